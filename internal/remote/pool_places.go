package remote

import (
	"context"
	"slices"
)

// places are how many connections more a Pool may have, and who waits for one. Nobody waits while there are free ones. Guarded by Pool.mu.
type places struct {
	free  int
	queue []chan struct{} // each is closed when its place is there; the first is the next
}

func (p *places) waited() bool { return len(p.queue) > 0 }

// takePlace waits for a place. An idle connection gives way at once, and so does each that becomes idle meanwhile.
func (p *Pool) takePlace(ctx context.Context) error {
	p.mu.Lock()
	if p.places.free > 0 {
		p.places.free--
		p.mu.Unlock()
		return nil
	}
	place := make(chan struct{})
	p.places.queue = append(p.places.queue, place)
	p.evictOne()
	p.mu.Unlock()
	select {
	case <-place:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.places.queue, place); i >= 0 {
		p.places.queue = slices.Delete(p.places.queue, i, i+1)
	} else { // it has come meanwhile
		p.places.give()
	}
	return context.Cause(ctx)
}

// givePlace gives a place to the one who has waited longest.
func (p *Pool) givePlace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.places.give()
}

func (p *places) give() {
	if len(p.queue) == 0 {
		p.free++
		return
	}
	close(p.queue[0])
	p.queue = slices.Delete(p.queue, 0, 1)
}

// evictOne closes a connection that nobody uses, if there is one. Those that were lost have given their places back already. It is called with p
// locked.
func (p *Pool) evictOne() {
	for instance, e := range p.entries {
		if e.idle == nil {
			continue
		}
		gives := e.connection.alive()
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
