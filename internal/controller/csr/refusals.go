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
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
)

// maxTrackedRequests is the maximum number of refused requests of one node that are checked again: the newest. A
// kubelet has one request of each kind. After some time without a response, it creates another request and discards
// the previous key.
const maxTrackedRequests = 8

// refusalWindow is the period for counting refusals: after maxTrackedRequests refusals for a node in one period,
// further requests wait.
const refusalWindow = 10 * time.Second

// requestTracker records the state of undecided requests. It is safe for concurrent use.
type requestTracker struct {
	mu sync.Mutex
	// reportsByRequest contains the last report about each pending request, by name, so that each report is emitted
	// once.
	reportsByRequest map[string]refusal
	// firstSeenByRequest contains the time of the first reconcile of each request, by name.
	firstSeenByRequest map[string]time.Time
	// refusalsByNode contains the latest refusals of each node.
	refusalsByNode map[string]refusals
}

// refusal is the report about a pending request, with the node and the creation time.
type refusal struct {
	node, message string
	created       time.Time
}

// refusals counts the refusals of a node since a time.
type refusals struct {
	since time.Time
	count int
}

// forgetRequest drops a request that is decided or deleted.
func (m *requestTracker) forgetRequest(request string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reportsByRequest, request)
	delete(m.firstSeenByRequest, request)
}

// recordFirstSeen returns the time of the first reconcile of a request, which the first call records.
func (m *requestTracker) recordFirstSeen(request string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.firstSeenByRequest == nil {
		m.firstSeenByRequest = map[string]time.Time{}
	}
	if _, again := m.firstSeenByRequest[request]; !again {
		m.firstSeenByRequest[request] = now
	}
	return m.firstSeenByRequest[request]
}

// refusalDelay returns how long the next request of a node must wait after many refusals.
func (m *requestTracker) refusalDelay(node string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if latest := m.refusalsByNode[node]; latest.count >= maxTrackedRequests {
		return max(0, latest.since.Add(refusalWindow).Sub(now))
	}
	return 0
}

// countRefusal counts a refusal.
func (m *requestTracker) countRefusal(node string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	latest := m.refusalsByNode[node]
	if now.Sub(latest.since) >= refusalWindow {
		latest = refusals{since: now}
	}
	latest.count++
	if m.refusalsByNode == nil {
		m.refusalsByNode = map[string]refusals{}
	}
	m.refusalsByNode[node] = latest
	// Entries of nodes without recent refusals are dropped.
	maps.DeleteFunc(m.refusalsByNode, func(_ string, other refusals) bool { return now.Sub(other.since) >= refusalWindow })
}

// recordIfNew records a report about a request, and reports whether to emit it: not if the message is unchanged, and
// not if the node already has maxTrackedRequests pending requests. In that case the oldest record is dropped, because
// a compromised node can create any number.
func (m *requestTracker) recordIfNew(request string, what refusal) (say bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	said, again := m.reportsByRequest[request]
	if again && said.message == what.message {
		return false
	}
	if m.reportsByRequest == nil {
		m.reportsByRequest = map[string]refusal{}
	}
	oldest, count := m.oldestRequest(what.node)
	m.reportsByRequest[request] = what
	if again || count < maxTrackedRequests {
		return true
	}
	delete(m.reportsByRequest, oldest)
	return false
}

// oldestRequest returns the name of the node's oldest pending request in memory, and the number of such requests. The
// caller must hold the lock.
func (m *requestTracker) oldestRequest(node string) (oldest string, count int) {
	for name, said := range m.reportsByRequest {
		if said.node != node {
			continue
		}
		count++
		if oldest == "" || isCreatedBefore(said.created, name, m.reportsByRequest[oldest].created, oldest) {
			oldest = name
		}
	}
	return oldest, count
}

// reportPending reports why a request is left pending, unless the report is suppressed.
func (r *Reconciler) reportPending(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	instance *v1alpha1.WindowsInstance, decision certrequest.Decision) {
	what := refusal{node: decision.NodeName, message: decision.Message, created: csr.CreationTimestamp.Time}
	if !r.tracker.recordIfNew(csr.Name, what) {
		return
	}
	log.FromContext(ctx).Info("certificate request left pending", "signer", csr.Spec.SignerName, "check", decision.Check,
		"reason", decision.Reason, "message", decision.Message)
	reason := "ServingCertificateNotApproved"
	if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		reason = "ClientCertificateNotApproved"
	}
	r.Events.Eventf(instance, csr, corev1.EventTypeWarning, reason, "Approve",
		"CertificateSigningRequest %s is left pending: %s", csr.Name, decision.Message)
}

// isSuperseded reports whether the node has created so many newer requests that no kubelet waits for this request.
func (r *Reconciler) isSuperseded(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	node string) (bool, error) {
	requests, err := index.RequestsBy(ctx, r.Client, csr.Spec.Username)
	if err != nil {
		return false, err
	}
	newer := 0
	for i := range requests {
		other := &requests[i]
		if isUndecided(other) && certrequest.IsRequestOf(*other, node) &&
			isCreatedBefore(csr.CreationTimestamp.Time, csr.Name, other.CreationTimestamp.Time, other.Name) {
			newer++
		}
	}
	return newer >= maxTrackedRequests, nil
}

// isCreatedBefore reports whether the first of two requests was created earlier. The API server stores full seconds;
// within a second, the names decide, so that the order is deterministic.
func isCreatedBefore(made time.Time, name string, otherMade time.Time, other string) bool {
	return cmp.Or(made.Compare(otherMade), strings.Compare(name, other)) < 0
}
