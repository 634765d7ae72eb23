package nodes

import (
	"cmp"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Written contains the Nodes that this operator has written, until the cache has these versions. The zero
// value is ready to use.
type Written struct {
	mu     sync.Mutex
	byName map[string]*corev1.Node
}

// note records a written Node, which must not be modified afterwards.
func (w *Written) note(node *corev1.Node) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byName == nil {
		w.byName = map[string]*corev1.Node{}
	}
	w.byName[node.Name] = node
}

// newer returns the Node as written if it is newer than the cached Node; otherwise the cached Node.
func (w *Written) newer(name string, cached *corev1.Node) *corev1.Node {
	if w == nil {
		return cached
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	written := w.byName[name]
	if written == nil {
		return cached
	}
	if cached == nil || cached.UID != written.UID || !Older(cached.ResourceVersion, written.ResourceVersion) {
		delete(w.byName, name)
		return cached
	}
	return written
}

// Seen records that the cache has a version of a Node, so that older writes of this operator can be dropped.
func (w *Written) Seen(node *corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if written := w.byName[node.Name]; written != nil && (written.UID != node.UID || !Older(node.ResourceVersion, written.ResourceVersion)) {
		delete(w.byName, node.Name)
	}
}

// Older reports whether one resource version of an object is older than another. The API server assigns
// increasing numbers.
func Older(version, than string) bool {
	return cmp.Or(cmp.Compare(len(version), len(than)), cmp.Compare(version, than)) < 0
}
