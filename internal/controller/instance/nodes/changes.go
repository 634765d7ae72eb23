package nodes

import "sync"

// Changes tell passes that wait for a Node of changes to it. The zero value works.
type Changes struct {
	mu      sync.Mutex
	waiting map[string]*awaited // by the Node's name
}

// awaited is the next change of a Node.
type awaited struct {
	happened chan struct{}
	waiters  int
}

// Happened ends the waits for a change of the Node, or of an instance that waits for it. It is called when the cache has
// the change.
func (c *Changes) Happened(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if next, there := c.waiting[node]; there {
		close(next.happened)
		delete(c.waiting, node)
	}
}

// next returns a channel that is closed at the next change of the Node. The caller calls leave after its wait.
func (c *Changes) next(node string) (happened <-chan struct{}, leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.waiting[node]
	if next == nil {
		if c.waiting == nil {
			c.waiting = map[string]*awaited{}
		}
		next = &awaited{happened: make(chan struct{})}
		c.waiting[node] = next
	}
	next.waiters++
	return next.happened, func() { c.leave(node, next) }
}

// leave forgets a change for which nobody waits any more: it may never happen.
func (c *Changes) leave(node string, next *awaited) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if next.waiters--; next.waiters == 0 && c.waiting[node] == next {
		delete(c.waiting, node)
	}
}
