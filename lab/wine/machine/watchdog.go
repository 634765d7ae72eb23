//go:build linux

package main

import (
	"net"
	"time"
)

const (
	// looks is how often the SSH server is asked before it counts as hung.
	looks = 9
	// lookLimit is how long an answer is waited for.
	lookLimit = 5 * time.Second
)

// hung is closed when the SSH server has not answered for too long, unless the boot has ended before. Wine may hang in a boot or a shutdown,
// which Windows does not, and nobody would ever hear of the host again.
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

// answers tells whether a server at the address says who it is. It leaves without a word.
func answers(address string) bool {
	conn, err := net.DialTimeout("tcp", address, lookLimit)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(lookLimit)); err != nil {
		return false
	}
	n, err := conn.Read(make([]byte, 1))
	return n > 0 && err == nil
}
