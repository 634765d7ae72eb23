package nodes

import "sync"

// Changes tell passes that wait for a Node of changes to it. The zero value works.
type Changes struct {
	mu      sync.Mutex
	waiting map[string]chan struct{} // by the Node's name
}

// Happened ends the waits for a change of the Node, or of an instance that waits for it. It is called when the cache has
// the change.
func (c *Changes) Happened(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if next, awaited := c.waiting[node]; awaited {
		close(next)
		delete(c.waiting, node)
	}
}

// next returns what is closed at the next change of the Node.
func (c *Changes) next(node string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, awaited := c.waiting[node]
	if !awaited {
		if c.waiting == nil {
			c.waiting = map[string]chan struct{}{}
		}
		next = make(chan struct{})
		c.waiting[node] = next
	}
	return next
}
