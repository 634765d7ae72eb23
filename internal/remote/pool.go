package remote

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Pool keeps connections by instance, so that one reconcile after another uses the same. Different instances do not
// wait for each other, unless there are Limits.Connections in use. Make it with NewPool.
type Pool struct {
	dialer *Dialer
	places *semaphore.Weighted // one for each connection, until its end

	mu      sync.Mutex
	waiting int // for a place
	entries map[string]*entry
	closed  bool
}

// entry is the place for one instance's connection.
type entry struct {
	turn chan struct{} // holds a token while nobody dials or closes

	// Guarded by Pool.mu.
	claims     int // of those that wait for their turn
	users      int // of the connection: Get without Release
	connection *Connection
	idle       chan struct{} // closed to end the wait for the end of idleness; nil when in use
}

// NewPool makes a pool of connections that dialer makes.
func NewPool(dialer *Dialer) *Pool {
	dialer = dialer.withDefaults()
	return &Pool{dialer: dialer, places: semaphore.NewWeighted(int64(dialer.Limits.Connections)),
		entries: map[string]*entry{}}
}

// Get returns the living connection of target's instance, or dials. A connection with another address, user, key or
// host key than the target's is closed first, also under others that use it. Every Get that brings a connection is
// followed by a Release.
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

// connect makes a connection when there is a place for one more, which it keeps until its end.
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

// takePlace waits for a place. An idle connection gives way at once, and so does each that becomes idle meanwhile.
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

// evictOne closes a connection that nobody uses, if there is one. Those that were lost have given their places back
// already. It is called with p locked.
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

// evict closes an idle connection. It is called with p locked, so that nobody begins to use it.
func (p *Pool) evict(instance string, e *entry) {
	c := e.connection
	close(e.idle)
	e.connection, e.idle = nil, nil
	p.forget(instance, e)
	c.abort(ErrClosed)
}

// Hold counts one more user of a connection from Get, and ends its idleness. It reports whether the connection lives and is
// still the pool's. If so, it is followed by a Release.
func (p *Pool) Hold(c *Connection) bool {
	p.mu.Lock()
	e := p.entries[c.target.Instance]
	current := e != nil && e.connection == c && c.Alive()
	p.mu.Unlock()
	return current && p.use(e) == c
}

// Touch lets the idleness of a connection begin anew.
func (p *Pool) Touch(c *Connection) {
	if p.Hold(c) {
		p.Release(c)
	}
}

// Serves reports whether the connection lives and is to target.
func (c *Connection) Serves(target Target) bool { return c.Alive() && c.LeadsTo(target) }

// LeadsTo reports whether the connection is, or was, one that target asks for.
func (c *Connection) LeadsTo(target Target) bool {
	if target.Port == 0 {
		target.Port = DefaultPort
	}
	return c.target.Address == target.Address && c.target.Port == target.Port && c.target.User == target.User &&
		c.target.Key.Hash() == target.Key.Hash() && target.admits(c.hostKey) == nil
}

// Alive reports whether the connection has not ended and is not about to.
func (c *Connection) Alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause == nil
}

// Release gives a connection from Get back. When nobody else uses it, it stays for Limits.Idle, unless another host
// waits for its place.
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

// Close closes the connection of an instance, if there is one, also under those that use it.
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

// CloseAll closes all connections. The pool makes no new ones.
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

// claim waits for the turn to dial for an instance.
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

// yield passes the turn on.
func (p *Pool) yield(instance string, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.claims--
	e.turn <- struct{}{}
	p.forget(instance, e)
}

// forget drops an entry that nobody needs. It is called with p locked.
func (p *Pool) forget(instance string, e *entry) {
	if e.claims == 0 && e.connection == nil && p.entries[instance] == e {
		delete(p.entries, instance)
	}
}

// use counts one more user of the connection and ends its idleness.
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
