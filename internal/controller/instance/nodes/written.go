package nodes

import (
	"cmp"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// WrittenNodes contains the Nodes that this operator has written, until the cache has these versions. The zero
// value is ready to use.
type WrittenNodes struct {
	mu     sync.Mutex
	byName map[string]*corev1.Node
}

// recordNode records a written Node, which must not be modified afterwards.
func (w *WrittenNodes) recordNode(node *corev1.Node) {
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

// newerNode returns the Node as written if it is newer than the cached Node; otherwise the cached Node.
func (w *WrittenNodes) newerNode(name string, cached *corev1.Node) *corev1.Node {
	if w == nil {
		return cached
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	written := w.byName[name]
	if written == nil {
		return cached
	}
	if cached == nil || cached.UID != written.UID || !IsOlderVersion(cached.ResourceVersion, written.ResourceVersion) {
		delete(w.byName, name)
		return cached
	}
	return written
}

// ObserveCached records that the cache has a version of a Node, so that older writes of this operator can be dropped.
func (w *WrittenNodes) ObserveCached(node *corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if written := w.byName[node.Name]; written != nil && (written.UID != node.UID || !IsOlderVersion(node.ResourceVersion, written.ResourceVersion)) {
		delete(w.byName, node.Name)
	}
}

// IsOlderVersion reports whether one resource version of an object is older than another. The API server assigns
// increasing numbers.
func IsOlderVersion(version, than string) bool {
	return cmp.Or(cmp.Compare(len(version), len(than)), cmp.Compare(version, than)) < 0
}
