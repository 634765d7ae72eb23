//go:build linux

package main

import (
	"io"
	"net"
	"time"
)

const (
	// probeCount is the number of probes of the SSH server before it counts as hung.
	probeCount = 9
	// probeTimeout is the timeout of one probe.
	probeTimeout = 5 * time.Second
)

// watchHang returns a channel that is closed when the SSH server has not responded for too long, unless the boot has
// ended before. Unlike Windows, Wine may hang in a boot or a shutdown, and the host would stay unreachable.
func (m *machine) watchHang(ended <-chan struct{}) <-chan struct{} {
	hung := make(chan struct{})
	if m.config.HangTimeout == 0 {
		return hung
	}
	go func() {
		ticker := time.NewTicker(m.config.HangTimeout / probeCount)
		defer ticker.Stop()
		for seen := time.Now(); time.Since(seen) < m.config.HangTimeout; {
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
			if isResponding(net.JoinHostPort(m.config.Address.Addr().String(), "22")) {
				seen = time.Now()
			}
		}
		close(hung)
	}()
	return hung
}

// isResponding reports whether a server at the address sends its identification. It closes the connection only after
// reading the remaining data: otherwise the server sees and logs an aborted connection.
func isResponding(address string) bool {
	dialer := net.Dialer{Timeout: probeTimeout}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	half, ok := conn.(*net.TCPConn)
	if !ok || half.SetDeadline(time.Now().Add(probeTimeout)) != nil || half.CloseWrite() != nil {
		return false
	}
	n, _ := io.Copy(io.Discard, half)
	return n > 0
}
