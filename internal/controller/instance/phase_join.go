package instance

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/certificates"
	"github.com/windows-machine-config/wmco/internal/controller/instance/delivery"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/naming"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// join is the phase in which the node's services get their certificates and its Node is bound.
type join struct {
	status   status.Writer
	nodes    nodes.Nodes
	events   event.Recorder
	specs    desired.Specs
	delivery *delivery.Delivery
	signer   certificates.Signer
	names    *naming.Names
	clock    clock.PassiveClock
	// superseded reports whether something else is wanted of an instance than what it was when the pass began.
	superseded func(ctx context.Context, began *v1alpha1.WindowsInstance) bool
}

// reuseLimit is how long what a certificate was signed on is good enough to bind the Node, too. Then other Machines are
// looked for anew: an apply may take many minutes.
const reuseLimit = 10 * time.Second

// registerLimit is how long a started kubelet may take to register its node before it is started again, and it counts as
// a failure.
const registerLimit = 5 * time.Minute

// run gets the node's services their certificates and binds the Node that the kubelet registers.
func (p join) run(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	if slices.Contains(s.Session.Left.Needs, nodespec.NeedCertificate) {
		if o := p.tellLostCertificate(ctx, s); o != nil {
			return o
		}
	}
	var claim *nodename.Claim
	if len(certificates.Needed(s.Session.Left)) > 0 {
		var o *obstacle.Obstacle
		if claim, o = p.mayHaveCertificates(ctx, s); o != nil {
			return o
		}
		if o := p.issueCertificates(ctx, s); o != nil {
			return o
		}
	}
	node, o := p.ownNode(ctx, s, claim)
	if o != nil {
		return o
	}
	if node == nil && p.mustRegisterAgain(s) {
		if o := p.registerAgain(ctx, s); o != nil {
			return o
		}
		if node, o = p.ownNode(ctx, s, nil); o != nil {
			return o
		}
	}
	if node == nil {
		return s.Awaited(p.clock.Now(), awaitedNode(s), registerLimit, &obstacle.Obstacle{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonNodeNotRegistered, Outcome: obstacle.ChangeFailed,
			Message: "The kubelet runs and has its certificate; Node " + s.NodeName() + " is not registered yet.",
			Next: `If this lasts, look at C:\var\log\kubelet on the host: can it reach ` +
				s.Cluster.APIServerInternalURL + "?",
		})
	}
	if p.superseded(ctx, s.Began) {
		return &obstacle.Obstacle{
			Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonWaiting, Outcome: obstacle.Wait, KeepsTurn: true,
			After:   time.Second,
			Message: "Something else is wanted of the host since the operator began to work on it.",
			Next:    "The operator looks again in a second.",
		}
	}
	if host := s.Instance.Status.Host; host != nil {
		s.Instance.Status.NodeRef.MachineID = host.MachineID
	}
	if err := p.nodes.Bind(ctx, s.Instance, node); err != nil {
		return obstacle.API(v1alpha1.ConditionJoined, "label the Node", err)
	}
	s.Pass(v1alpha1.ConditionJoined, "The kubelet has its certificate and registered Node "+node.Name+".")
	return nil
}

// mayHaveCertificates tells what keeps certificates from being signed for the name of the instance's node, whether it
// is registered or not. It returns what it was decided on; nil when the Node is bound to the instance.
func (p join) mayHaveCertificates(ctx context.Context, s *scope.Scope) (*nodename.Claim, *obstacle.Obstacle) {
	node, err := p.nodes.Recent(ctx, s.Instance)
	if err != nil {
		return nil, obstacle.API(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node != nil && nodeidentity.Bound(s.Instance, node) {
		return nil, nil
	}
	return p.names.StillNamed(ctx, s, nil)
}

// ownNode returns the instance's Node as it is now; nil when there is none, to which nothing is written. It waits a
// moment for a kubelet that is to register. A claim is what this pass has had a certificate signed for; it serves once
// more for a while, for a Node that nobody has.
func (p join) ownNode(ctx context.Context, s *scope.Scope, claim *nodename.Claim) (*corev1.Node, *obstacle.Obstacle) {
	node, err := p.registered(ctx, s)
	if err != nil {
		return nil, obstacle.API(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node == nil || nodeidentity.Bound(s.Instance, node) {
		return node, nil
	}
	if claim != nil && node.Annotations[v1alpha1.AnnotationInstance] == "" && p.clock.Since(claim.Now) < reuseLimit {
		claim.Node = node
	} else {
		claim = nil
	}
	claim, o := p.names.StillNamed(ctx, s, claim)
	if o != nil {
		return nil, o
	}
	return claim.Node, nil
}

// registered reads the instance's Node, and waits for one that was never there.
func (p join) registered(ctx context.Context, s *scope.Scope) (*corev1.Node, error) {
	if s.Instance.Status.NodeRef.UID == "" {
		return p.nodes.AwaitRegistered(ctx, s.Waiter())
	}
	return p.nodes.Of(ctx, s.Instance)
}

func awaitedNode(s *scope.Scope) string { return "the Node " + s.NodeName() }

// mustRegisterAgain reports whether a Node that is not there will not come by itself: it was there before, the kubelet
// runs for longer than the instance exists, or it has had registerLimit. A kubelet that is older than its instance
// registered a Node that was deleted together with the former instance. The age of the kubelet counts as well as the
// wait, because the wait begins anew with each start of the operator.
func (p join) mustRegisterAgain(s *scope.Scope) bool {
	if s.Instance.Status.NodeRef.UID != "" {
		return true
	}
	now, since := p.clock.Now(), s.Session.KubeletSince
	waited := now.Sub(s.Session.WaitingSince(awaitedNode(s), now))
	if !since.IsZero() {
		if s.Instance.Status.Registration == "" && since.Before(s.Instance.CreationTimestamp.Time) {
			return true
		}
		waited = max(waited, now.Sub(since))
	}
	return waited >= registerLimit && now.Sub(s.Session.RegistersAgain) >= registerLimit
}

// kubeletAge returns how long the kubelet has run without a Node, at least.
func (p join) kubeletAge(s *scope.Scope) time.Duration {
	if since := s.Session.KubeletSince; !since.IsZero() {
		return p.clock.Since(since).Truncate(time.Second)
	}
	return registerLimit
}

// registerAgain has the kubelet register its Node again: it does so only when it starts. The wait for a Node that has
// not come goes on, so that it counts as a failure when that does not help.
func (p join) registerAgain(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	ref, waiting, since := s.Instance.Status.NodeRef, "", time.Time{}
	if ref.UID != "" {
		p.events.Emit(event.NodeLost(s.Instance))
		s.Instance.Status.Registration, ref.UID = ref.UID, ""
	} else {
		waiting, since = s.Session.Waiting, s.Session.Since
		p.events.Emit(event.NodeMissing(s.Instance, p.kubeletAge(s)))
		s.Session.RegistersAgain = p.clock.Now()
		s.Instance.Status.Registration = s.Session.RegistersAgain.UTC().Format(time.RFC3339)
	}
	if err := p.status.Patch(ctx, s); err != nil {
		return obstacle.API(v1alpha1.ConditionJoined, "note that the kubelet must register its Node again", err)
	}
	spec, o := p.specs.ForNode(ctx, s)
	if o != nil {
		return o
	}
	o = p.delivery.Apply(ctx, s, spec)
	s.Session.Waiting, s.Session.Since = waiting, since
	return o
}

// tellLostCertificate says that a node which had joined before needs another certificate: it was off for longer than
// the life of its own, or lost the file.
func (p join) tellLostCertificate(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	if s.Instance.Status.NodeRef.UID == "" {
		return nil
	}
	lost := &obstacle.Obstacle{
		Phase: "join", Condition: v1alpha1.ConditionJoined, Reason: v1alpha1.ReasonCertificateExpired, Outcome: obstacle.Wait,
		Message: lostCertificate(s.Session.Facts.Identity.Current),
		Next:    "The operator has a new certificate signed for the key that the host has made, and sends it over the pinned connection.",
	}
	p.events.Emit(event.Stopped(s.Instance, lost))
	if err := p.status.Show(ctx, s, lost); err != nil {
		return obstacle.API(v1alpha1.ConditionJoined, "say that the kubelet's certificate is lost", err)
	}
	return nil
}

func lostCertificate(current *plan.CertificateFacts) string {
	if current == nil {
		return "The kubelet's certificate is no longer on the host."
	}
	return "The kubelet's certificate for " + current.CommonName + " was valid until " +
		current.NotAfter.UTC().Format(time.RFC3339) + "."
}

// issueCertificates signs the requests that came over the pinned connection, and sends all certificates back with the
// spec at once.
func (p join) issueCertificates(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	spec, o := p.specs.ForNode(ctx, s)
	if o != nil {
		return o
	}
	issued := spec
	for _, identity := range spec.AllIdentities() {
		if !slices.Contains(certificates.Needed(s.Session.Left), identity.Name) {
			continue
		}
		certificate, o := p.signer.Issue(ctx, s, identity, s.Session.Facts)
		if o != nil {
			if o.Outcome == obstacle.ChangeFailed { // the host asks for another identity
				s.Session.Applied, s.Session.Facts = "", nil // the next attempt asks the host again
			}
			return o
		}
		issued = issued.WithCertificate(identity.Name, string(certificate))
	}
	if o := p.delivery.Apply(ctx, s, issued); o != nil {
		return o
	}
	if left := certificates.Needed(s.Session.Left); len(left) > 0 {
		return p.signer.NotTaken(ctx, s, left[0])
	}
	return nil
}
