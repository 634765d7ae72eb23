package test

import (
	"context"
	"net"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// operatorRun is the lifetime of one operator process.
type operatorRun struct {
	killed   chan struct{} // closed at the kill; later actions of the operator have no effect
	operator *testenv.Operator
}

func (l *operatorRun) hasEnded() bool {
	select {
	case <-l.killed:
		return true
	default:
		return false
	}
}

// start starts the next operator.
func (k *reaper) start() {
	l := &operatorRun{killed: make(chan struct{})}
	o, err := k.env.RunOperator(func(c *operator.Config) {
		if k.release != nil {
			testenv.WithRelease(*k.release)(c)
		}
		c.RESTConfig = rest.CopyConfig(c.RESTConfig)
		c.RESTConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return &killableAPI{k, l, next} })
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
			return &killableConn{Conn: conn, reaper: k, run: l, watch: watch}, nil
		}
	})
	if err != nil {
		k.Fatal(err)
	}
	l.operator = o
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current = l
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

// killableAPI is the operator's transport to the API server.
type killableAPI struct {
	*reaper
	run  *operatorRun
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The operator is killed after a change was made and before it reads the
// response.
func (a *killableAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	if a.run.hasEnded() {
		return nil, errStruck
	}
	response, err := a.next.RoundTrip(request)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		return response, err
	}
	if !a.agentsOnly && a.waitAtBoundary(a.run, request.URL.Path, apiBoundaries(request, a.gate)...) || a.run.hasEnded() {
		_ = response.Body.Close() // the body is not used
		return nil, errStruck
	}
	return response, nil
}

// killableConn is a connection to a host.
type killableConn struct {
	net.Conn
	reaper *reaper
	run    *operatorRun
	watch  *hostWatch
}

// Read implements net.Conn. The operator is killed after an action of the host and before it reads the result.
func (c *killableConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.run.hasEnded() {
		return 0, errStruck
	}
	if c.watch != nil && !c.reaper.agentsOnly && c.reaper.waitAtBoundary(c.run, c.watch.host.Options.Name, c.watch.newBoundaries()...) {
		return 0, errStruck
	}
	return n, err
}

// Write implements net.Conn.
func (c *killableConn) Write(b []byte) (int, error) {
	if c.run.hasEnded() {
		return 0, errStruck
	}
	return c.Conn.Write(b)
}
