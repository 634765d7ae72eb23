package rig

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/operator"
)

// StaleWatches runs a proxy in front of the API server that holds back what watches tell for the delay; everything else
// passes at once. An operator with the adjustment sees the cluster through it, with caches that are so much too old.
// The proxy ends with the rig.
func (r *Rig) StaleWatches(delay time.Duration) (adjust func(*operator.Config), err error) {
	target, err := url.Parse(r.Config.Host)
	if err != nil {
		return nil, fmt.Errorf("delay watches: the API server's address: %w", err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(r.Config))
	if err != nil {
		return nil, fmt.Errorf("delay watches: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("delay watches: %w", err)
	}
	quiet := log.New(io.Discard, "", 0) // operators are killed in the middle of requests
	server := &http.Server{ErrorLog: quiet, ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		Rewrite: func(request *httputil.ProxyRequest) { request.SetURL(target) },
		ModifyResponse: func(response *http.Response) error {
			if watch := response.Request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
				response.Body = newDelayedBody(response.Body, delay)
			}
			return nil
		},
	}}
	r.group.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			r.stop(fmt.Errorf("the proxy that delays watches: %w", err))
		}
	})
	r.group.Go(func() {
		<-r.running.Done()
		_ = server.Close() // it has nothing to say that anybody waits for
	})
	return func(c *operator.Config) {
		c.RESTConfig = rest.CopyConfig(c.RESTConfig)
		c.RESTConfig.Host, c.RESTConfig.TLSClientConfig = "http://"+listener.Addr().String(), rest.TLSClientConfig{}
	}, nil
}

// delayedBody hands out what it reads a fixed time after it came.
type delayedBody struct {
	source io.ReadCloser
	delay  time.Duration
	chunks chan chunk
	rest   []byte
	err    error
	close  sync.Once
	closed chan struct{}
}

type chunk struct {
	due  time.Time
	data []byte
	err  error
}

func newDelayedBody(source io.ReadCloser, delay time.Duration) *delayedBody {
	b := &delayedBody{source: source, delay: delay, chunks: make(chan chunk, 4096), closed: make(chan struct{})}
	go b.receive()
	return b
}

// receive reads until the source ends, which it does when the body is closed.
func (b *delayedBody) receive() {
	for {
		data := make([]byte, 16<<10)
		n, err := b.source.Read(data)
		select {
		case b.chunks <- chunk{due: time.Now().Add(b.delay), data: data[:n], err: err}:
		case <-b.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (b *delayedBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 && b.err == nil {
		select {
		case c := <-b.chunks:
			timer := time.NewTimer(time.Until(c.due))
			select {
			case <-timer.C:
			case <-b.closed:
				timer.Stop()
				return 0, net.ErrClosed
			}
			b.rest, b.err = c.data, c.err
		case <-b.closed:
			return 0, net.ErrClosed
		}
	}
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; n > 0 {
		return n, nil
	}
	return 0, b.err
}

// Close implements io.Closer.
func (b *delayedBody) Close() error {
	b.close.Do(func() { close(b.closed) })
	return b.source.Close()
}
