package csr

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/lookup"
	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
)

// mostTold is the maximum number of refused requests of one node that are checked again: the newest. A kubelet has
// one request of each kind. After some time without a response, it creates another request and discards the
// previous key.
const mostTold = 8

// refusalWindow is the period for counting refusals: after mostTold refusals for a node in one period, further
// requests wait.
const refusalWindow = 10 * time.Second

// memory records the state of undecided requests. It is safe for concurrent use.
type memory struct {
	mu sync.Mutex
	// The last report about each pending request, by name, so that each report is emitted once.
	told map[string]refusal
	// seen contains the time of the first reconcile of each request, by name.
	seen map[string]time.Time
	// refusals contains the latest refusals of each node.
	refusals map[string]refusals
}

// refusal is the report about a pending request, with the node and the creation time.
type refusal struct {
	node, message string
	made          time.Time
}

// refusals counts the refusals of a node since a time.
type refusals struct {
	since time.Time
	count int
}

// forget drops a request that is decided or deleted.
func (m *memory) forget(request string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.told, request)
	delete(m.seen, request)
}

// see returns the time of the first reconcile of a request.
func (m *memory) see(request string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = map[string]time.Time{}
	}
	if _, again := m.seen[request]; !again {
		m.seen[request] = now
	}
	return m.seen[request]
}

// wait returns how long the next request of a node must wait after many refusals.
func (m *memory) wait(node string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if latest := m.refusals[node]; latest.count >= mostTold {
		return max(0, latest.since.Add(refusalWindow).Sub(now))
	}
	return 0
}

// refused counts a refusal.
func (m *memory) refused(node string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	latest := m.refusals[node]
	if now.Sub(latest.since) >= refusalWindow {
		latest = refusals{since: now}
	}
	latest.count++
	if m.refusals == nil {
		m.refusals = map[string]refusals{}
	}
	m.refusals[node] = latest
	// Entries of nodes without recent refusals are dropped.
	maps.DeleteFunc(m.refusals, func(_ string, other refusals) bool { return now.Sub(other.since) >= refusalWindow })
}

// note records a report about a request, and reports whether to emit it: not if the message is unchanged, and not
// if the node already has mostTold pending requests. In that case the oldest record is dropped, because a
// compromised node can create any number.
func (m *memory) note(request string, what refusal) (say bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	said, again := m.told[request]
	if again && said.message == what.message {
		return false
	}
	if m.told == nil {
		m.told = map[string]refusal{}
	}
	oldest, count := m.oldest(what.node)
	m.told[request] = what
	if again || count < mostTold {
		return true
	}
	delete(m.told, oldest)
	return false
}

// oldest returns the name of the node's oldest pending request in memory, and the number of such requests. The
// caller must hold the lock.
func (m *memory) oldest(node string) (oldest string, count int) {
	for name, said := range m.told {
		if said.node != node {
			continue
		}
		count++
		if oldest == "" || before(said.made, name, m.told[oldest].made, oldest) {
			oldest = name
		}
	}
	return oldest, count
}

// tell reports why a request is left pending, unless the report is suppressed.
func (r *Reconciler) tell(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	instance *v1alpha1.WindowsInstance, decision certrequest.Decision) {
	what := refusal{node: decision.NodeName, message: decision.Message, made: csr.CreationTimestamp.Time}
	if !r.memory.note(csr.Name, what) {
		return
	}
	log.FromContext(ctx).Info("certificate request left pending", "signer", csr.Spec.SignerName, "check", decision.Check,
		"reason", decision.Reason, "message", decision.Message)
	reason := "ServingCertificateRefused"
	if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		reason = "ClientCertificateRefused"
	}
	r.Events.Eventf(instance, csr, corev1.EventTypeWarning, reason, "Approve",
		"CertificateSigningRequest %s is left pending: %s", csr.Name, decision.Message)
}

// outdated reports whether the node has created so many newer requests that no kubelet waits for this one any more.
func (r *Reconciler) outdated(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	node string) (bool, error) {
	requests, err := lookup.RequestsBy(ctx, r.Client, csr.Spec.Username)
	if err != nil {
		return false, err
	}
	newer := 0
	for i := range requests {
		other := &requests[i]
		if undecided(other) && certrequest.AsksFor(*other, node) &&
			before(csr.CreationTimestamp.Time, csr.Name, other.CreationTimestamp.Time, other.Name) {
			newer++
		}
	}
	return newer >= mostTold, nil
}

// before reports whether the first of two requests was created earlier. The API server stores full seconds; within
// a second, the names decide, so that the order is deterministic.
func before(made time.Time, name string, otherMade time.Time, other string) bool {
	return cmp.Or(made.Compare(otherMade), strings.Compare(name, other)) < 0
}
