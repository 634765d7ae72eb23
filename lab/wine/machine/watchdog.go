//go:build linux

package main

import (
	"io"
	"net"
	"time"
)

const (
	// looks is how often the SSH server is asked before it counts as hung.
	looks = 9
	// lookLimit is how long an answer is waited for.
	lookLimit = 5 * time.Second
)

// hung is closed when the SSH server has not answered for too long, unless the boot has ended before. Wine may hang in
// a boot or a shutdown, which Windows does not, and nobody would ever hear of the host again.
func (m *machine) hung(ended <-chan struct{}) <-chan struct{} {
	hung := make(chan struct{})
	if m.config.Hang == 0 {
		return hung
	}
	go func() {
		ticker := time.NewTicker(m.config.Hang / looks)
		defer ticker.Stop()
		for seen := time.Now(); time.Since(seen) < m.config.Hang; {
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
			if answers(net.JoinHostPort(m.config.Address.Addr().String(), "22")) {
				seen = time.Now()
			}
		}
		close(hung)
	}()
	return hung
}

// answers reports whether a server at the address says who it is. It leaves without a word, and takes what the server
// has to say: else the server sees a connection that was broken off, and notes it.
func answers(address string) bool {
	dialer := net.Dialer{Timeout: lookLimit}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	half, ok := conn.(*net.TCPConn)
	if !ok || half.SetDeadline(time.Now().Add(lookLimit)) != nil || half.CloseWrite() != nil {
		return false
	}
	n, _ := io.Copy(io.Discard, half)
	return n > 0
}
