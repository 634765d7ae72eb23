// Package places limits how many hosts may hold workers of the instance controller of which the operator does not know
// that they answer. It keeps the order in which they wait. It knows instances by name and reads nothing.
package places

import (
	"slices"
	"sync"
)

// Limits of hosts that are worked on at the same time. Hosts that were nodes before and answer need no place: the
// controller has workers for them besides.
const (
	// unprovenLimit is for hosts that were never nodes and slow ones together.
	unprovenLimit = 256
	// slowLimit is for slow hosts alone. New hosts have the other places: a slow host holds its place for minutes, and
	// does so again and again.
	slowLimit = 128
)

// Kind is what the operator knows of a host.
type Kind int

// The kinds of hosts.
const (
	Proven Kind = iota // it was a node before, and answered when it was asked last
	New                // it was never a node, and has not kept the operator waiting yet
	Slow               // the last attempt has failed, and kept a worker waiting before
)

// KindOf returns the kind of a host.
func KindOf(wasNode, slow bool) Kind {
	switch {
	case slow:
		return Slow
	case !wasNode:
		return New
	}
	return Proven
}

// Places are the places of all hosts. The zero value works.
type Places struct {
	mu      sync.Mutex
	held    map[string]Kind
	waiting []waiter // in the order in which they came
	wake    func(instance string)
}

type waiter struct {
	instance string
	kind     Kind
}

// Wake sets what is called for an instance that has waited for a place and has one now.
func (p *Places) Wake(wake func(instance string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake = wake
}

// Take reports whether the instance may be worked on now. If not, it waits until it is woken. Each Take that returns
// true is followed by a Return.
func (p *Places) Take(instance string, kind Kind) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind == Proven {
		p.drop(instance)
		return true
	}
	if _, holds := p.held[instance]; holds {
		return true
	}
	if p.free(kind) {
		p.drop(instance)
		p.hold(instance, kind)
		return true
	}
	if !slices.ContainsFunc(p.waiting, func(w waiter) bool { return w.instance == instance }) {
		p.waiting = append(p.waiting, waiter{instance, kind})
	}
	return false
}

// Return gives the place of an instance back, if it has one, and forgets that it waits.
func (p *Places) Return(instance string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(instance)
}

// drop is called with p locked.
func (p *Places) drop(instance string) {
	delete(p.held, instance)
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiter) bool { return w.instance == instance })
	for p.passOn(New) || p.passOn(Slow) {
	}
}

// passOn gives a free place to the first that waits of a kind.
func (p *Places) passOn(kind Kind) bool {
	first := slices.IndexFunc(p.waiting, func(w waiter) bool { return w.kind == kind })
	if first < 0 || !p.free(kind) {
		return false
	}
	next := p.waiting[first].instance
	p.waiting = slices.Delete(p.waiting, first, first+1)
	p.hold(next, kind)
	if p.wake != nil {
		p.wake(next)
	}
	return true
}

func (p *Places) hold(instance string, kind Kind) {
	if p.held == nil {
		p.held = map[string]Kind{}
	}
	p.held[instance] = kind
}

// free reports whether there is a place for one more of a kind.
func (p *Places) free(kind Kind) bool {
	if len(p.held) >= unprovenLimit {
		return false
	}
	slow := 0
	for _, other := range p.held {
		if other == Slow {
			slow++
		}
	}
	return kind != Slow || slow < slowLimit
}
