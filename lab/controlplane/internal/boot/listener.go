package boot

import "net"

// join returns a listener that accepts the connections of both listeners and has the address of the first.
func join(first, second net.Listener) net.Listener {
	if second == nil {
		return first
	}
	j := &joined{Listener: first, second: second, accepted: make(chan accepted), closed: make(chan struct{})}
	go j.accept(first)
	go j.accept(second)
	return j
}

type accepted struct {
	conn net.Conn
	err  error
}

type joined struct {
	net.Listener
	second   net.Listener
	accepted chan accepted
	closed   chan struct{}
}

func (j *joined) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		select {
		case j.accepted <- accepted{conn, err}:
		case <-j.closed:
			if conn != nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			return
		}
	}
}

// Accept returns the next connection of either listener.
func (j *joined) Accept() (net.Conn, error) {
	select {
	case a := <-j.accepted:
		return a.conn, a.err
	case <-j.closed:
		return nil, net.ErrClosed
	}
}

// Close closes both listeners. It must be called only once.
func (j *joined) Close() error {
	close(j.closed)
	_ = j.second.Close()
	return j.Listener.Close()
}
