// Package faultproxy is a proxy between a client and the API server that injects faults: watches are delayed or
// held, requests fail, or responses are lost after the request was executed. Faults can be limited to one
// resource, so that a client sees a new state of one kind beside an old state of another kind, as with caches
// that are filled by different API servers.
package faultproxy

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Proxy is a running proxy. It forwards everything until a fault is added.
type Proxy struct {
	listener net.Listener
	server   *http.Server
	ended    chan error

	mu      sync.Mutex
	faults  []*activeFault
	changed chan struct{} // closed when the faults change
	watches map[*watchBody]struct{}
}

// Start starts a proxy in front of the API server of a configuration.
func Start(config *rest.Config) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("start a proxy: the API server's address: %w", err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	p := &Proxy{listener: listener, ended: make(chan error, 1), changed: make(chan struct{}),
		watches: map[*watchBody]struct{}{}}
	quiet := log.New(io.Discard, "", 0) // clients are killed during requests
	forward := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		Rewrite:        func(request *httputil.ProxyRequest) { request.SetURL(target) },
		ModifyResponse: p.modifyResponse,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{ErrorLog: quiet, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !p.refuseRequest(w, r) && !p.applyStaleList(w, r) {
				forward.ServeHTTP(w, r)
			}
		})}
	go func() { p.ended <- p.server.Serve(listener) }()
	return p, nil
}

// Through returns a configuration with the same identity that sends requests through the proxy.
func (p *Proxy) Through(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host, config.TLSClientConfig = "http://"+p.listener.Addr().String(), rest.TLSClientConfig{}
	return config
}

// Close ends the proxy with all connections. If the proxy ended before, it returns the reason.
func (p *Proxy) Close() error {
	_ = p.server.Close() // its error does not matter
	if err := <-p.ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the proxy in front of the API server: %w", err)
	}
	return nil
}

// Add injects a fault for a resource, such as nodes, until remove is called; for all resources if the resource
// is "".
func (p *Proxy) Add(resource string, fault Fault) (remove func()) {
	active := &activeFault{Fault: fault, resource: resource}
	p.mu.Lock()
	p.faults = append(p.faults, active)
	p.notifyWatches()
	p.mu.Unlock()
	if fault.Refuse {
		p.BreakWatches(resource)
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(p.faults, func(each *activeFault) bool { return each == active })
		p.notifyWatches()
	})
}

// notifyWatches wakes the watches. The caller holds the lock.
func (p *Proxy) notifyWatches() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// BreakWatches ends the current watches of a resource; all watches if the resource is "".
func (p *Proxy) BreakWatches(resource string) {
	p.mu.Lock()
	var watches []*watchBody
	for body := range p.watches {
		if resource == "" || body.resource == resource {
			watches = append(watches, body)
		}
	}
	p.mu.Unlock()
	for _, body := range watches {
		_ = body.Close() // the purpose of the call
	}
}

// Resource returns the resource of an API path; "" for a path without a resource.
func Resource(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return ""
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return parts[0]
}
