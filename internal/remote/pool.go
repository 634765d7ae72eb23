package remote

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Pool keeps connections by instance so that successive reconciles share a connection. Different instances do not
// wait for each other unless Limits.Connections are in use. Use NewPool to create a Pool.
type Pool struct {
	dialer *Dialer
	places *semaphore.Weighted // one slot per connection, held until the connection ends

	mu      sync.Mutex
	waiting int // callers waiting for a slot
	entries map[string]*entry
	closed  bool
}

// entry holds the connection of one instance.
type entry struct {
	turn chan struct{} // holds a token while no caller dials or closes

	// Guarded by Pool.mu.
	claims     int // callers that wait for or hold the token
	users      int // users of the connection: Get without Release
	connection *Connection
	idle       chan struct{} // closed when an idle connection is used or dropped; nil while in use
}

// NewPool returns a pool of connections created by dialer.
func NewPool(dialer *Dialer) *Pool {
	dialer = dialer.withDefaults()
	return &Pool{dialer: dialer, places: semaphore.NewWeighted(int64(dialer.Limits.Connections)),
		entries: map[string]*entry{}}
}

// Get returns the open connection of the target's instance, or dials. If the address, user, key or host key of the
// connection differs from the target, Get first closes the connection, even if it is in use. Every successful Get
// must be followed by a Release.
func (p *Pool) Get(ctx context.Context, target Target) (*Connection, error) {
	e, err := p.claim(ctx, target.Instance)
	if err != nil {
		return nil, err
	}
	defer p.yield(target.Instance, e)
	if c := p.use(e); c != nil {
		if c.Serves(target) {
			return c, nil
		}
		p.drop(e)
	}
	c, err := p.connect(ctx, target)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.abort(ErrClosed)
		return nil, ErrClosed
	}
	e.connection, e.users = c, 1
	return c, nil
}

// connect acquires a slot and dials. The connection holds the slot until its end.
func (p *Pool) connect(ctx context.Context, target Target) (*Connection, error) {
	if err := p.takePlace(ctx); err != nil {
		return nil, err
	}
	c, err := p.dialer.Connect(ctx, target)
	if err != nil {
		p.places.Release(1)
		return nil, err
	}
	go func() {
		<-c.Done()
		p.places.Release(1)
	}()
	return c, nil
}

// takePlace waits for a slot. While a caller waits, idle connections are closed, including connections that become
// idle later.
func (p *Pool) takePlace(ctx context.Context) error {
	if p.places.TryAcquire(1) {
		return nil
	}
	p.mu.Lock()
	p.waiting++
	p.evictOne()
	p.mu.Unlock()
	err := p.places.Acquire(ctx, 1)
	p.mu.Lock()
	p.waiting--
	p.mu.Unlock()
	if err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// evictOne closes one idle connection, if any. Lost connections have already released their slots and do not count.
// The caller must hold p.mu.
func (p *Pool) evictOne() {
	for instance, e := range p.entries {
		if e.idle == nil {
			continue
		}
		gives := e.connection.Alive()
		p.evict(instance, e)
		if gives {
			return
		}
	}
}

// evict closes an idle connection. The caller must hold p.mu, so that no other caller can start to use the
// connection.
func (p *Pool) evict(instance string, e *entry) {
	c := e.connection
	close(e.idle)
	e.connection, e.idle = nil, nil
	p.forget(instance, e)
	c.abort(ErrClosed)
}

// Hold adds a user to a connection from Get and cancels its idle timeout. It reports whether the connection is open
// and still in the pool. If so, the caller must call Release.
func (p *Pool) Hold(c *Connection) bool {
	p.mu.Lock()
	e := p.entries[c.target.Instance]
	current := e != nil && e.connection == c && c.Alive()
	p.mu.Unlock()
	return current && p.use(e) == c
}

// Touch restarts the idle timeout of a connection.
func (p *Pool) Touch(c *Connection) {
	if p.Hold(c) {
		p.Release(c)
	}
}

// Serves reports whether the connection is open and matches target.
func (c *Connection) Serves(target Target) bool { return c.Alive() && c.LeadsTo(target) }

// LeadsTo reports whether the open or closed connection matches target.
func (c *Connection) LeadsTo(target Target) bool {
	if target.Port == 0 {
		target.Port = DefaultPort
	}
	return c.target.Address == target.Address && c.target.Port == target.Port && c.target.User == target.User &&
		c.target.Key.Hash() == target.Key.Hash() && target.admits(c.hostKey) == nil
}

// Alive reports whether the connection has neither ended nor started to end.
func (c *Connection) Alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause == nil
}

// Release releases a connection from Get. An unused connection stays open for Limits.Idle, unless another host waits
// for its slot.
func (p *Pool) Release(c *Connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[c.target.Instance]
	if e == nil || e.connection != c || e.users == 0 {
		return
	}
	if e.users--; e.users > 0 {
		return
	}
	e.idle = make(chan struct{})
	if p.waiting > 0 {
		p.evict(c.target.Instance, e)
		return
	}
	go p.expire(e, c, e.idle)
}

// expire closes a connection that stays unused.
func (p *Pool) expire(e *entry, c *Connection, used <-chan struct{}) {
	if newWatch(c.clock, "use of the connection", c.limits.Idle).until(context.Background(), used) == nil {
		return
	}
	p.mu.Lock()
	unused := e.connection == c && e.idle == used
	if unused {
		e.connection, e.idle = nil, nil
		p.forget(c.target.Instance, e)
	}
	p.mu.Unlock()
	if unused {
		c.Close()
	}
}

// Close closes the connection of an instance, if any, even if it is in use.
func (p *Pool) Close(instance string) {
	p.mu.Lock()
	e := p.entries[instance]
	p.mu.Unlock()
	if e != nil {
		p.drop(e)
		p.mu.Lock()
		p.forget(instance, e)
		p.mu.Unlock()
	}
}

// CloseAll closes all connections. Later calls of Get fail.
func (p *Pool) CloseAll() {
	p.mu.Lock()
	p.closed = true
	entries := p.entries
	p.entries = map[string]*entry{}
	p.mu.Unlock()
	for _, e := range entries {
		p.drop(e)
	}
}

// Len returns the number of open connections.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.entries {
		if e.connection != nil && e.connection.Alive() {
			n++
		}
	}
	return n
}

// claim waits for the exclusive right to dial for an instance.
func (p *Pool) claim(ctx context.Context, instance string) (*entry, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	e := p.entries[instance]
	if e == nil {
		e = &entry{turn: make(chan struct{}, 1)}
		e.turn <- struct{}{}
		p.entries[instance] = e
	}
	e.claims++
	p.mu.Unlock()
	select {
	case <-e.turn:
		return e, nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		e.claims--
		p.forget(instance, e)
		return nil, context.Cause(ctx)
	}
}

// yield releases the right acquired by claim.
func (p *Pool) yield(instance string, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.claims--
	e.turn <- struct{}{}
	p.forget(instance, e)
}

// forget deletes an unused entry. The caller must hold p.mu.
func (p *Pool) forget(instance string, e *entry) {
	if e.claims == 0 && e.connection == nil && p.entries[instance] == e {
		delete(p.entries, instance)
	}
}

// use adds a user to the connection and cancels its idle timeout.
func (p *Pool) use(e *entry) *Connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.connection == nil {
		return nil
	}
	e.users++
	if e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
	return e.connection
}

// drop closes an entry's connection.
func (p *Pool) drop(e *entry) {
	p.mu.Lock()
	c := e.connection
	e.connection, e.users = nil, 0
	if e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
	p.mu.Unlock()
	if c != nil {
		c.Close()
	}
}
