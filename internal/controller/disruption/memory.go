package disruption

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// memory is what this process knows of the policy without asking the API server: what its cache has, or what it has
// written itself, which the cache may not have yet.
type memory struct {
	client    client.Reader
	namespace string

	mu sync.Mutex
	// last is the newest policy whose status says what is being disturbed.
	last *v1alpha1.WindowsDisruptionPolicy
}

// latest returns the newest policy that is known; nil when none is. It must not be changed. A policy that was made
// again, and whose status does not say yet what is being disturbed, is given what its predecessor said.
func (m *memory) latest(ctx context.Context) (*v1alpha1.WindowsDisruptionPolicy, error) {
	cached := &v1alpha1.WindowsDisruptionPolicy{}
	err := m.client.Get(ctx, types.NamespacedName{Namespace: m.namespace, Name: v1alpha1.DisruptionPolicyName}, cached)
	if apierrors.IsNotFound(err) {
		cached = nil
	} else if err != nil {
		return nil, fmt.Errorf("read WindowsDisruptionPolicy %s: %w", v1alpha1.DisruptionPolicyName, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case cached == nil || m.last != nil && !newer(cached, m.last):
		return m.last, nil
	case !fresh(cached):
		m.last = cached
		return cached, nil
	case m.last != nil:
		cached = cached.DeepCopy()
		cached.Status.Disruptions = m.last.Status.Disruptions
	}
	return cached, nil
}

// keep remembers a policy as it was read or written.
func (m *memory) keep(p *v1alpha1.WindowsDisruptionPolicy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !fresh(p) && (m.last == nil || newer(p, m.last)) {
		m.last = p.DeepCopy()
	}
}

// remembered returns the disruptions that are known to this process.
func (m *memory) remembered() []v1alpha1.Disruption {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		return nil
	}
	return m.last.Status.Disruptions
}

func newer(a, b *v1alpha1.WindowsDisruptionPolicy) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order > 0
}
