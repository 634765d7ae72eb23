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

// mostTold is how many refused requests of one node are looked at again: the newest. A kubelet has one of each kind,
// and when it has waited for some time it makes another and forgets the key of the one before.
const mostTold = 8

// refusalWindow is the time in which at most mostTold requests of one node are refused; more of them wait.
const refusalWindow = 10 * time.Second

// memory is what the controller remembers of undecided requests. It is safe for concurrent use.
type memory struct {
	mu sync.Mutex
	// told is what was last said of a request that is left pending, by its name, so that it is said once.
	told map[string]refusal
	// seen is when a request was first looked at, by its name.
	seen map[string]time.Time
	// refusals are the latest ones of each node.
	refusals map[string]refusals
}

// refusal is what was said of a request that is left pending, whose it is, and when it was made.
type refusal struct {
	node, message string
	made          time.Time
}

// refusals counts the refusals of a node since a time.
type refusals struct {
	since time.Time
	count int
}

// forget drops a request that is decided on, or gone.
func (m *memory) forget(request string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.told, request)
	delete(m.seen, request)
}

// see returns when a request was first looked at.
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

// wait returns how long the next request of a node has to wait, because many were refused.
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
	// Names of nodes that were refused come and go.
	maps.DeleteFunc(m.refusals, func(_ string, other refusals) bool { return now.Sub(other.since) >= refusalWindow })
}

// note remembers what is said of a request, and reports whether it is to be said: not if the same was said before, and
// not if that many requests of the node are pending already. The oldest of these is forgotten then: a node in wrong
// hands makes as many as it likes.
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

// oldest returns the name of the node's oldest request that is looked at again, and how many there are. It is called
// with m locked.
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

// tell says why a request is left pending, if it is to be said.
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

// outdated reports whether the node has made so many requests since that no kubelet waits for this one any more.
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

// before tells which of two requests was made first. The API server notes whole seconds; within one, names decide, so
// that the order is always the same.
func before(made time.Time, name string, otherMade time.Time, other string) bool {
	return cmp.Or(made.Compare(otherMade), strings.Compare(name, other)) < 0
}
