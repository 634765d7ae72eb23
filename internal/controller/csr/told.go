package csr

import (
	"cmp"
	"context"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
)

// mostTold is how many refused requests of one node are looked at again: the newest. A kubelet has one of each kind,
// and when it has waited for some time it makes another and forgets the key of the one before.
const mostTold = 8

// refusal is what was said of a request that is left pending, whose it is, and when it was made.
type refusal struct {
	node, message string
	made          time.Time
}

// tell says why a request is left pending, unless the same was said of it before. Of a node that has that many pending,
// the oldest is forgotten for this one, and nothing more is said: a node in wrong hands makes as many as it likes.
func (r *Reconciler) tell(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	instance *v1alpha1.WindowsInstance, decision certrequest.Decision) {
	said, again := r.told[csr.Name]
	if again && said.message == decision.Message {
		return
	}
	if r.told == nil {
		r.told = map[string]refusal{}
	}
	oldest, count := r.oldest(decision.NodeName)
	r.told[csr.Name] = refusal{node: decision.NodeName, message: decision.Message, made: csr.CreationTimestamp.Time}
	if !again && count >= mostTold {
		delete(r.told, oldest)
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

// outdated reports whether the node has made so many requests since, which were refused, that no kubelet waits for this
// one any more.
func (r *Reconciler) outdated(csr *certificatesv1.CertificateSigningRequest, node string) bool {
	newer := 0
	for name, said := range r.told {
		if said.node == node && before(csr.CreationTimestamp.Time, csr.Name, said.made, name) {
			newer++
		}
	}
	return newer >= mostTold
}

// oldest returns the name of the node's oldest request that is looked at again, and how many there are.
func (r *Reconciler) oldest(node string) (oldest string, count int) {
	for name, said := range r.told {
		if said.node != node {
			continue
		}
		count++
		if oldest == "" || before(said.made, name, r.told[oldest].made, oldest) {
			oldest = name
		}
	}
	return oldest, count
}

// before tells which of two requests was made first. The API server notes whole seconds; within one, names decide, so
// that the order is always the same.
func before(made time.Time, name string, otherMade time.Time, other string) bool {
	return cmp.Or(made.Compare(otherMade), strings.Compare(name, other)) < 0
}
