package faultproxy

import (
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// watchBody releases the data of a watch when the faults of the resource allow it.
type watchBody struct {
	proxy    *Proxy
	resource string
	source   io.ReadCloser
	chunks   chan chunk
	rest     []byte
	err      error
	close    sync.Once
	closed   chan struct{}
}

type chunk struct {
	receivedAt time.Time
	data       []byte
	err        error
}

func (p *Proxy) newWatchBody(source io.ReadCloser, resource string) *watchBody {
	b := &watchBody{proxy: p, resource: resource, source: source, chunks: make(chan chunk, 4096),
		closed: make(chan struct{})}
	p.mu.Lock()
	p.watches[b] = struct{}{}
	// A watch that was requested before a refusal and answered after the refusal is not among the watches that
	// the refusal ended.
	refused := slices.ContainsFunc(p.faults, func(f *activeFault) bool { return f.Refuse && f.isForResource(resource) })
	p.mu.Unlock()
	go b.readSource()
	if refused {
		_ = b.Close() // the purpose of the refusal
	}
	return b
}

// readSource reads until the source ends, which happens when the body is closed.
func (b *watchBody) readSource() {
	for {
		data := make([]byte, 16<<10)
		n, err := b.source.Read(data)
		select {
		case b.chunks <- chunk{receivedAt: time.Now(), data: data[:n], err: err}:
		case <-b.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (b *watchBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 && b.err == nil {
		select {
		case c := <-b.chunks:
			if !b.awaitRelease(c.receivedAt) {
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

// awaitRelease waits until data that arrived at a time may be released; false if the body was closed before.
func (b *watchBody) awaitRelease(came time.Time) bool {
	for {
		hold, delay, changed := b.proxy.currentWatchDelay(b.resource)
		left := time.Until(came.Add(delay))
		if !hold && left <= 0 {
			return true
		}
		var due <-chan time.Time
		if !hold {
			due = time.After(left)
		}
		select {
		case <-due:
		case <-changed:
		case <-b.closed:
			return false
		}
	}
}

// currentWatchDelay returns the current faults of the watches of a resource, and a channel that is closed when they
// change.
func (p *Proxy) currentWatchDelay(resource string) (hold bool, delay time.Duration, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.isForResource(resource) {
			hold, delay = hold || f.Hold, max(delay, f.Delay)
		}
	}
	return hold, delay, p.changed
}

// Close implements io.Closer.
func (b *watchBody) Close() error {
	b.close.Do(func() {
		close(b.closed)
		b.proxy.mu.Lock()
		delete(b.proxy.watches, b)
		b.proxy.mu.Unlock()
	})
	return b.source.Close()
}
