package remote

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Pool keeps connections by instance so that successive reconciles share a connection. Different instances do not
// wait for each other unless Limits.MaxConnections connections are in use. Use NewPool to create a Pool.
type Pool struct {
	dialer *Dialer
	slots  *semaphore.Weighted // one slot per connection, held until the connection ends

	mu      sync.Mutex
	waiting int // callers waiting for a slot
	entries map[string]*entry
	closed  bool
}

// entry holds the connection of one instance.
type entry struct {
	dialToken chan struct{} // holds a token while no caller dials or closes

	// Guarded by Pool.mu.
	claims     int // callers that wait for or hold the token
	users      int // users of the connection: Get without Release
	connection *Connection
	idle       chan struct{} // closed when an idle connection is used or dropped; nil while in use
}

// NewPool returns a pool of connections created by dialer.
func NewPool(dialer *Dialer) *Pool {
	dialer = dialer.withDefaults()
	return &Pool{dialer: dialer, slots: semaphore.NewWeighted(int64(dialer.Limits.MaxConnections)),
		entries: map[string]*entry{}}
}

// Get returns the open connection of the target's instance, or dials. If the address, user, key or host key of the
// connection differs from the target, Get first closes the connection, even if it is in use. Every successful Get
// must be followed by a Release.
func (p *Pool) Get(ctx context.Context, target Target) (*Connection, error) {
	e, err := p.acquireDialToken(ctx, target.Instance)
	if err != nil {
		return nil, err
	}
	defer p.releaseDialToken(target.Instance, e)
	if c := p.addUser(e); c != nil {
		if c.CanServe(target) {
			return c, nil
		}
		p.closeEntry(e)
	}
	c, err := p.dialInSlot(ctx, target)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.closeWithCause(ErrClosed)
		return nil, ErrClosed
	}
	e.connection, e.users = c, 1
	return c, nil
}

// dialInSlot acquires a slot and dials. The connection holds the slot until its end.
func (p *Pool) dialInSlot(ctx context.Context, target Target) (*Connection, error) {
	if err := p.acquireSlot(ctx); err != nil {
		return nil, err
	}
	c, err := p.dialer.Connect(ctx, target)
	if err != nil {
		p.slots.Release(1)
		return nil, err
	}
	go func() {
		<-c.Done()
		p.slots.Release(1)
	}()
	return c, nil
}

// acquireSlot waits for a slot. While a caller waits, idle connections are closed, including connections that become
// idle later.
func (p *Pool) acquireSlot(ctx context.Context) error {
	if p.slots.TryAcquire(1) {
		return nil
	}
	p.mu.Lock()
	p.waiting++
	p.evictOne()
	p.mu.Unlock()
	err := p.slots.Acquire(ctx, 1)
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
		gives := e.connection.IsAlive()
		p.evictIdle(instance, e)
		if gives {
			return
		}
	}
}

// evictIdle closes an idle connection. The caller must hold p.mu, so that no other caller can start to use the
// connection.
func (p *Pool) evictIdle(instance string, e *entry) {
	c := e.connection
	close(e.idle)
	e.connection, e.idle = nil, nil
	p.deleteUnused(instance, e)
	c.closeWithCause(ErrClosed)
}

// TryHold adds a user to a connection from Get and cancels its idle timeout. It reports whether the connection is open
// and still in the pool. If so, the caller must call Release.
func (p *Pool) TryHold(c *Connection) bool {
	p.mu.Lock()
	e := p.entries[c.target.Instance]
	current := e != nil && e.connection == c && c.IsAlive()
	p.mu.Unlock()
	return current && p.addUser(e) == c
}

// Touch restarts the idle timeout of a connection.
func (p *Pool) Touch(c *Connection) {
	if p.TryHold(c) {
		p.Release(c)
	}
}

// CanServe reports whether the connection is open and matches target.
func (c *Connection) CanServe(target Target) bool { return c.IsAlive() && c.HasTarget(target) }

// HasTarget reports whether the open or closed connection matches target.
func (c *Connection) HasTarget(target Target) bool {
	if target.Port == 0 {
		target.Port = DefaultPort
	}
	return c.target.Address == target.Address && c.target.Port == target.Port && c.target.User == target.User &&
		c.target.Key.Hash() == target.Key.Hash() && target.checkHostKey(c.hostKey) == nil
}

// IsAlive reports whether the connection has neither ended nor started to end.
func (c *Connection) IsAlive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause == nil
}

// Release releases a connection from Get. An unused connection stays open for Limits.IdleTimeout, unless another host
// waits for its slot.
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
		p.evictIdle(c.target.Instance, e)
		return
	}
	go p.expireIdle(e, c, e.idle)
}

// expireIdle closes a connection that stays unused.
func (p *Pool) expireIdle(e *entry, c *Connection, used <-chan struct{}) {
	if newWatch(c.clock, "use of the connection", c.limits.IdleTimeout).waitFor(context.Background(), used) == nil {
		return
	}
	p.mu.Lock()
	unused := e.connection == c && e.idle == used
	if unused {
		e.connection, e.idle = nil, nil
		p.deleteUnused(c.target.Instance, e)
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
		p.closeEntry(e)
		p.mu.Lock()
		p.deleteUnused(instance, e)
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
		p.closeEntry(e)
	}
}

// Len returns the number of open connections.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.entries {
		if e.connection != nil && e.connection.IsAlive() {
			n++
		}
	}
	return n
}

// acquireDialToken waits for the exclusive right to dial for an instance.
func (p *Pool) acquireDialToken(ctx context.Context, instance string) (*entry, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	e := p.entries[instance]
	if e == nil {
		e = &entry{dialToken: make(chan struct{}, 1)}
		e.dialToken <- struct{}{}
		p.entries[instance] = e
	}
	e.claims++
	p.mu.Unlock()
	select {
	case <-e.dialToken:
		return e, nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		e.claims--
		p.deleteUnused(instance, e)
		return nil, context.Cause(ctx)
	}
}

// releaseDialToken releases the right acquired by acquireDialToken.
func (p *Pool) releaseDialToken(instance string, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.claims--
	e.dialToken <- struct{}{}
	p.deleteUnused(instance, e)
}

// deleteUnused deletes an unused entry. The caller must hold p.mu.
func (p *Pool) deleteUnused(instance string, e *entry) {
	if e.claims == 0 && e.connection == nil && p.entries[instance] == e {
		delete(p.entries, instance)
	}
}

// addUser adds a user to the connection and cancels its idle timeout.
func (p *Pool) addUser(e *entry) *Connection {
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

// closeEntry closes an entry's connection.
func (p *Pool) closeEntry(e *entry) {
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
