package test

import (
	"context"
	"net"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// life is the lifetime of one operator process.
type life struct {
	killed   chan struct{} // closed at the kill; later actions of the operator have no effect
	operator *testenv.Operator
}

func (l *life) hasEnded() bool {
	select {
	case <-l.killed:
		return true
	default:
		return false
	}
}

// start starts the next operator.
func (k *reaper) start() {
	l := &life{killed: make(chan struct{})}
	o, err := k.env.RunOperator(func(c *operator.Config) {
		if k.release != nil {
			testenv.WithRelease(*k.release)(c)
		}
		c.RESTConfig = rest.CopyConfig(c.RESTConfig)
		c.RESTConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return &mortalAPI{k, l, next} })
		dial := c.Dial
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if l.hasEnded() {
				return nil, errStruck
			}
			watch := k.watchOf(address)
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &mortalConn{Conn: conn, reaper: k, life: l, watch: watch}, nil
		}
	})
	if err != nil {
		k.Fatal(err)
	}
	l.operator = o
	k.mu.Lock()
	defer k.mu.Unlock()
	k.life = l
	k.lives++
}

// watchOf returns the watch of the host with the dialed SSH server, or nil for other ports.
func (k *reaper) watchOf(address string) *hostWatch {
	ip, port, err := net.SplitHostPort(address)
	if err != nil || port != "22" {
		return nil
	}
	k.mu.Lock()
	w := k.watches[ip]
	k.mu.Unlock()
	w.skipActions()
	return w
}

// mortalAPI is the operator's transport to the API server.
type mortalAPI struct {
	*reaper
	life *life
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The operator is killed after a change was made and before it reads the
// response.
func (a *mortalAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	if a.life.hasEnded() {
		return nil, errStruck
	}
	response, err := a.next.RoundTrip(request)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		return response, err
	}
	if !a.agentsOnly && a.waitAtBoundary(a.life, request.URL.Path, apiBoundaries(request, a.gate)...) || a.life.hasEnded() {
		_ = response.Body.Close() // the body is not used
		return nil, errStruck
	}
	return response, nil
}

// mortalConn is a connection to a host.
type mortalConn struct {
	net.Conn
	reaper *reaper
	life   *life
	watch  *hostWatch
}

// Read implements net.Conn. The operator is killed after an action of the host and before it reads the result.
func (c *mortalConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.life.hasEnded() {
		return 0, errStruck
	}
	if c.watch != nil && !c.reaper.agentsOnly && c.reaper.waitAtBoundary(c.life, c.watch.host.Options.Name, c.watch.newBoundaries()...) {
		return 0, errStruck
	}
	return n, err
}

// Write implements net.Conn.
func (c *mortalConn) Write(b []byte) (int, error) {
	if c.life.hasEnded() {
		return 0, errStruck
	}
	return c.Conn.Write(b)
}
