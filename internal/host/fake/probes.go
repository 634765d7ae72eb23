package fake

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/windows-machine-config/wmco/internal/host"
)

// maxProbeResponse is the maximum number of bytes read from a probe's answer.
const maxProbeResponse = 1 << 10

type localServer struct {
	owner   *Process
	handler http.Handler
}

type localRuntime struct {
	owner  *Process
	status func() host.RuntimeStatus
}

// ServeLocal answers Probes.HTTPGet on 127.0.0.1:port until the process ends.
func (p *Process) ServeLocal(port int, handler http.Handler) error {
	return p.runLocked(func(m *Machine) error {
		if taken := m.local[port]; taken != nil {
			return fmt.Errorf("listen on 127.0.0.1:%d, in use by %s: %w", port, taken.owner.Path, errAddressInUse)
		}
		m.local[port] = &localServer{p, handler}
		m.changes.notifyWaiters()
		return nil
	})
}

// ServeRuntime answers Probes.ContainerRuntime at the endpoint until the process ends.
func (p *Process) ServeRuntime(endpoint string, status func() host.RuntimeStatus) error {
	return p.runLocked(func(m *Machine) error {
		if taken := m.runtimes[foldCase(endpoint)]; taken != nil {
			return fmt.Errorf("listen on %s, in use by %s: %w", endpoint, taken.owner.Path, errDenied)
		}
		m.runtimes[foldCase(endpoint)] = &localRuntime{p, status}
		m.changes.notifyWaiters()
		return nil
	})
}

// probes implements host.Probes for one process.
type probes struct{ p *Process }

func (b probes) HTTPGet(ctx context.Context, address string, client []byte) (status int, body string, err error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return 0, "", fmt.Errorf("GET %s: %w", address, err)
	}
	port, err := strconv.Atoi(parsed.Port())
	if err != nil {
		port = 80
	}
	var server *localServer
	err = b.p.runOperation(ctx, "Probes", "HTTPGet", address, func(m *Machine) error {
		own := append([]string{"127.0.0.1", "localhost"}, m.options.Addresses...)
		server = m.local[port]
		if server == nil || !slices.Contains(own, parsed.Hostname()) {
			return fmt.Errorf("GET %s: %w", address, errRefused)
		}
		return nil
	})
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := b.p.processContext(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", fmt.Errorf("GET %s: %w", address, err)
	}
	if request.TLS, err = clientTLSState(parsed.Scheme, client); err != nil {
		return 0, "", fmt.Errorf("GET %s: parse the client certificate: %w", address, err)
	}
	return server.serveRequest(request)
}

// clientTLSState returns a TLS server's view of a client, including the client's certificate, if any. The handler
// decides whether a certificate is required and accepted.
func clientTLSState(scheme string, client []byte) (*tls.ConnectionState, error) {
	if scheme != "https" {
		return nil, nil
	}
	state := &tls.ConnectionState{HandshakeComplete: true}
	if client == nil {
		return state, nil
	}
	pair, err := tls.X509KeyPair(client, client)
	if err != nil {
		return nil, err
	}
	state.PeerCertificates = []*x509.Certificate{pair.Leaf}
	return state, nil
}

// serveRequest runs the handler until it answers, the request's context is done, or the server's process ends.
func (s *localServer) serveRequest(request *http.Request) (int, string, error) {
	answer := &recorder{header: http.Header{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.handler.ServeHTTP(answer, request)
	}()
	select {
	case <-done:
		body, _ := io.ReadAll(io.LimitReader(&answer.body, maxProbeResponse)) // memory cannot fail
		return max(answer.status, http.StatusOK), string(body), nil
	case <-s.owner.done:
		return 0, "", fmt.Errorf("GET %s: %w", request.URL, io.ErrUnexpectedEOF)
	case <-request.Context().Done():
		return 0, "", fmt.Errorf("GET %s: %w", request.URL, context.Cause(request.Context()))
	}
}

func (b probes) ContainerRuntime(ctx context.Context, endpoint string) (host.RuntimeStatus, error) {
	var runtime *localRuntime
	err := b.p.runOperation(ctx, "Probes", "ContainerRuntime", endpoint, func(m *Machine) error {
		if runtime = m.runtimes[foldCase(endpoint)]; runtime == nil {
			return fmt.Errorf("query the container runtime at %s: %w", endpoint, errNotFound)
		}
		return nil
	})
	if err != nil {
		return host.RuntimeStatus{}, err
	}
	return runtime.status(), nil
}

// recorder records the answer of a handler.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}
