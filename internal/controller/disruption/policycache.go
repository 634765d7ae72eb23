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

// policyCache is the policy as known to this process without a request to the API server: from the cache, or as last
// written by this process, which the cache may not contain yet.
type policyCache struct {
	client    client.Reader // reads the cache
	live      client.Reader
	namespace string

	mu sync.Mutex
	// last is the last known policy with a written status.
	last *v1alpha1.WindowsDisruptionPolicy
}

// latestPolicy returns the last known policy; nil if there is none. Callers must not modify the policy. A recreated
// policy with an empty status is returned with the disruptions of its predecessor.
func (m *policyCache) latestPolicy(ctx context.Context) (*v1alpha1.WindowsDisruptionPolicy, error) {
	known, err := m.read(ctx, m.client)
	if err != nil {
		return nil, err
	}
	if m.isAhead(known) {
		// Either the cache lacks the last write of this process, or the API server was restored from a backup,
		// which also resets the resource versions. Only the API server has the answer.
		if known, err = m.read(ctx, m.live); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case known == nil:
		return m.last, nil
	case !hasNoStatus(known):
		m.last = known
	case m.last != nil:
		known = known.DeepCopy()
		known.Status.Disruptions, known.Status.ObservedNodes = m.last.Status.Disruptions, m.last.Status.ObservedNodes
	}
	return known, nil
}

// read returns the policy; nil if there is none.
func (m *policyCache) read(ctx context.Context, from client.Reader) (*v1alpha1.WindowsDisruptionPolicy, error) {
	found := &v1alpha1.WindowsDisruptionPolicy{}
	err := from.Get(ctx, types.NamespacedName{Namespace: m.namespace, Name: v1alpha1.DisruptionPolicyName}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read WindowsDisruptionPolicy %s: %w", v1alpha1.DisruptionPolicyName, err)
	}
	return found, nil
}

// isAhead reports whether this process knows a policy with a higher resource version than the cached policy.
func (m *policyCache) isAhead(cached *v1alpha1.WindowsDisruptionPolicy) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cached == nil || m.last == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(m.last.ResourceVersion, cached.ResourceVersion)
	return err == nil && order > 0
}

// storePolicy records a policy that the API server has just returned.
func (m *policyCache) storePolicy(p *v1alpha1.WindowsDisruptionPolicy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !hasNoStatus(p) {
		m.last = p.DeepCopy()
	}
}

// lastStatus returns the status that is known to this process.
func (m *policyCache) lastStatus() v1alpha1.WindowsDisruptionPolicyStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		return v1alpha1.WindowsDisruptionPolicyStatus{}
	}
	return m.last.Status
}
