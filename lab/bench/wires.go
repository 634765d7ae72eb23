package bench

import (
	"context"
	"net"
	"sync"
)

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// wires are the open connections of an operator to the API server, to be cut as a restarted load balancer does.
type wires struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

func newWires() *wires { return &wires{open: map[net.Conn]struct{}{}} }

func (w *wires) dialer(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open[conn] = struct{}{}
		return &wire{Conn: conn, wires: w}, nil
	}
}

// cut closes all and returns how many there were. New ones are allowed.
func (w *wires) cut() int {
	w.mu.Lock()
	open := w.open
	w.open = map[net.Conn]struct{}{}
	w.mu.Unlock()
	for conn := range open {
		_ = conn.Close() // that is the point
	}
	return len(open)
}

// wire is a connection that is forgotten when it is closed.
type wire struct {
	net.Conn
	wires *wires
}

// Close implements net.Conn.
func (w *wire) Close() error {
	w.wires.mu.Lock()
	delete(w.wires.open, w.Conn)
	w.wires.mu.Unlock()
	return w.Conn.Close()
}
