package winetestenv

import (
	"io"
	"net"
)

// Forward forwards each connection that a listener accepts to a TCP address, until the listener is closed.
func Forward(listener net.Listener, address string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go forwardConn(conn, address)
	}
}

// forwardConn copies in both directions until either side ends.
func forwardConn(near net.Conn, address string) {
	defer near.Close()
	far, err := net.Dial("tcp", address)
	if err != nil {
		return // the client sees its connection end
	}
	defer far.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // the client detects a lost connection
			done <- struct{}{}
		}()
	}
	<-done
}
