package fleet

import (
	"io"
	"net"
	"sync/atomic"
)

// wire stands between the operator and the API server, passes all bytes on as they are, and counts those that the
// operator gets.
type wire struct {
	listener net.Listener
	target   string
	got      atomic.Int64
}

// newWire listens on an address at which the API server's certificate is valid, and passes connections on to it.
func newWire(host, target string) (*wire, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	w := &wire{listener: listener, target: target}
	go w.serve()
	return w, nil
}

func (w *wire) close() error { return w.listener.Close() }

func (w *wire) serve() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return // it was closed
		}
		go w.pass(conn)
	}
}

// pass copies both ways until either side ends.
func (w *wire) pass(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", w.target)
	if err != nil {
		return // the operator sees its connection end
	}
	defer far.Close()
	ended := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(far, near) // a lost connection is the operator's to see
		ended <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(near, &meter{far, &w.got})
		ended <- struct{}{}
	}()
	<-ended
}

// meter counts what is read.
type meter struct {
	io.Reader
	count *atomic.Int64
}

// Read implements io.Reader.
func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	m.count.Add(int64(n))
	return n, err
}
