package instance

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/identity"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// joinPhase is the phase that issues the certificates of the node's services and binds the Node.
type joinPhase struct {
	nodes     nodes.Nodes
	events    status.Recorder
	specs     desired.SpecBuilder
	delivery  delivery
	signer    identity.Signer
	nodeNamer *identity.NodeNamer
	clock     clock.PassiveClock
}

// registrationTimeout is the maximum time that a started kubelet may take to register its node. After that, the kubelet
// is restarted, and the wait counts as a failure.
const registrationTimeout = 5 * time.Minute

// reconcile issues the certificates of the node's services and binds the Node registered by the kubelet.
func (p joinPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	if slices.Contains(s.Host.RemainingPlan.Needs, nodespec.NeedCertificate) {
		if o := p.reportLostCertificate(s); o != nil {
			return o
		}
	}
	if len(identity.NeededIdentities(s.Host.RemainingPlan)) > 0 {
		if o := p.issueCertificates(ctx, s); o != nil {
			return o
		}
	}
	s.Host.IssuedCertificates, s.Session.LostCertificate = nil, false
	node, o := p.getOwnNode(ctx, s)
	if o != nil {
		return o
	}
	if node == nil && p.needsReregistration(s) {
		switch present, err := p.nodes.Get(ctx, s.Instance); {
		case err != nil:
			return result.FromAPIError(v1alpha1.ConditionJoined, "read the Node", err)
		case present == nil:
			return p.requestReregistration(s)
		}
	}
	if node == nil {
		return s.WithTimeout(p.clock.Now(), nodeWaitName(s), registrationTimeout, &result.Result{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonNodeNotRegistered, Outcome: result.ChangeFailed,
			StatusDelay: p.nodes.NodeWaitStatusDelay,
			Message:     "The kubelet runs and has its certificate; Node " + s.NodeName() + " is not registered yet.",
			NextAction: "The operator continues when the Node is registered. If this takes long, check that the host reaches " +
				s.Cluster.APIServerInternalURL + `, and the log in C:\var\log\kubelet on the host.`,
		})
	}
	if host := s.Instance.Status.Host; host != nil {
		s.Instance.Status.NodeRef.MachineID = host.MachineID
	}
	if err := p.nodes.Bind(ctx, s.Instance, node); err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "label the Node", err)
	}
	s.MarkTrue(v1alpha1.ConditionJoined, "The kubelet has its certificate and registered Node "+node.Name+".")
	return nil
}

// checkNodeName returns the result that blocks certificates for the name of the instance's node, registered
// or not; nil for none. It reads the API server unless the Node is bound to the instance.
func (p joinPhase) checkNodeName(ctx context.Context, s *scope.Scope) *result.Result {
	node, err := p.nodes.Get(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node != nil && nodeidentity.IsBound(s.Instance, node) {
		return nil
	}
	_, o := p.nodeNamer.CheckName(ctx, s)
	return o
}

// getOwnNode returns the instance's Node. If it returns nil, nothing must be written. An unbound Node is read from
// the API server, with all objects that may have the same name.
func (p joinPhase) getOwnNode(ctx context.Context, s *scope.Scope) (*corev1.Node, *result.Result) {
	node, err := p.nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return nil, result.FromAPIError(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node == nil || nodeidentity.IsBound(s.Instance, node) {
		return node, nil
	}
	claim, o := p.nodeNamer.CheckName(ctx, s)
	if o != nil {
		return nil, o
	}
	return claim.Node, nil
}

func nodeWaitName(s *scope.Scope) string { return "the Node " + s.NodeName() }

// needsReregistration reports whether a missing Node needs a restart of the kubelet: the Node was registered
// before, the kubelet is older than the instance, or registrationTimeout has passed. A kubelet that is older than its
// instance registered a Node that was deleted with the former instance. The age of the kubelet counts in addition
// to the wait, because the wait restarts with the operator.
func (p joinPhase) needsReregistration(s *scope.Scope) bool {
	if s.Instance.Status.NodeRef.UID != "" {
		return true
	}
	now, since := p.clock.Now(), s.Session.KubeletSince
	waited := now.Sub(s.Session.WaitingSince(nodeWaitName(s), now))
	if !since.IsZero() {
		if s.Instance.Status.RegistrationID == "" && since.Before(s.Instance.CreationTimestamp.Time) {
			return true
		}
		waited = max(waited, now.Sub(since))
	}
	return waited >= registrationTimeout && now.Sub(s.Session.RegistrationRestart) >= registrationTimeout
}

// kubeletAge returns the minimum time that the kubelet has run without a Node.
func (p joinPhase) kubeletAge(s *scope.Scope) time.Duration {
	if since := s.Session.KubeletSince; !since.IsZero() {
		return p.clock.Since(since).Truncate(time.Second)
	}
	return registrationTimeout
}

// requestReregistration has the kubelet register the Node again. A kubelet only registers when started, which a new
// value of status.registrationID triggers. The wait for a Node that never registered continues, so the wait counts as
// a failure if the restart does not help.
func (p joinPhase) requestReregistration(s *scope.Scope) *result.Result {
	ref := s.Instance.Status.NodeRef
	if ref.UID != "" {
		p.events.Emit(status.NodeDeletedExternallyEvent(s.Instance))
		s.Instance.Status.RegistrationID, ref.UID = ref.UID, ""
		s.Session.WaitName, s.Session.WaitStart = "", time.Time{}
	} else {
		p.events.Emit(status.NodeRegistrationTimedOutEvent(s.Instance, p.kubeletAge(s)))
		s.Session.RegistrationRestart, s.Session.KeepsWait = p.clock.Now(), true
		s.Instance.Status.RegistrationID = s.Session.RegistrationRestart.UTC().Format(time.RFC3339)
	}
	return result.WriteFirst(v1alpha1.ConditionJoined)
}

// reportLostCertificate returns a result once if a node that had joined before needs another certificate. The
// node was off for longer than the lifetime of its certificate, or lost the file. The next reconcile continues.
func (p joinPhase) reportLostCertificate(s *scope.Scope) *result.Result {
	if s.Instance.Status.NodeRef.UID == "" || s.Session.LostCertificate {
		return nil
	}
	s.Session.LostCertificate = true
	lost := &result.Result{
		Phase: "join", Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonCertificateExpired, Outcome: result.Wait, HoldsSlot: true,
		RequeueAfter: minRequeueDelay,
		Message:      describeLostCertificate(s.Host.Facts.Identity.Current),
		NextAction:   "The operator requests a new certificate for the host's key and sends it over the pinned connection.",
	}
	p.events.Emit(status.StoppedEvent(s.Instance, lost))
	return lost
}

func describeLostCertificate(current *plan.CertificateFacts) string {
	if current == nil {
		return "The kubelet's certificate is no longer on the host."
	}
	return "The kubelet's certificate for " + current.CommonName + " was valid until " +
		current.NotAfter.UTC().Format(time.RFC3339) + "."
}

// issueCertificates obtains certificates for the requests received over the pinned connection, and sends all of them
// with the spec.
func (p joinPhase) issueCertificates(ctx context.Context, s *scope.Scope) *result.Result {
	spec, o := p.specs.BuildForCachedNode(ctx, s)
	if o != nil {
		return o
	}
	wanted := slices.DeleteFunc(spec.AllIdentities(), func(i nodespec.Identity) bool {
		return !slices.Contains(identity.NeededIdentities(s.Host.RemainingPlan), i.Name)
	})
	if s.Host.IssuedCertificates == nil {
		issued, o := p.signer.Issue(s, wanted, s.Host.Facts, func() *result.Result { return p.checkNodeName(ctx, s) })
		if o != nil {
			if o.Outcome == result.ChangeFailed { // the host requests another identity
				s.Host.AppliedDigest, s.Host.Facts = "", nil // the next attempt reads the facts again
			}
			return o
		}
		s.Host.IssuedCertificates = issued
	}
	for _, each := range wanted {
		spec = spec.WithCertificate(each.Name, s.Host.IssuedCertificates[each.Name])
	}
	if o := p.delivery.apply(ctx, s, spec); o != nil {
		return o
	}
	if left := identity.NeededIdentities(s.Host.RemainingPlan); len(left) > 0 {
		s.Host.IssuedCertificates = nil
		return p.signer.HandleRejection(ctx, s, left[0])
	}
	return nil
}
