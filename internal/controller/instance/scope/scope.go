// Package scope holds the data that the phases of one reconcile of an instance share. It reads and writes nothing else.
package scope

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// Conditions are the condition types of an instance, in the order in which they become true. Ready and UpToDate come
// last.
var Conditions = [...]string{
	v1alpha1.ConditionReachable,
	v1alpha1.ConditionSupported,
	v1alpha1.ConditionPrepared,
	v1alpha1.ConditionInstalled,
	v1alpha1.ConditionJoined,
	v1alpha1.ConditionNetworkReady,
	v1alpha1.ConditionReady,
	v1alpha1.ConditionUpToDate,
}

// Scope is the data that the phases of one reconcile share.
type Scope struct {
	Instance *v1alpha1.WindowsInstance
	// Began is the instance as it was when the reconcile began. Instance may have a later spec: each write returns it.
	Began *v1alpha1.WindowsInstance
	// Stored is the instance as the API server has it, as far as this reconcile knows.
	Stored *v1alpha1.WindowsInstance
	// Session is what earlier reconciles have learnt of the host.
	Session *Session

	Key        sshkey.Key
	Cluster    nodespec.Cluster
	Settings   disruptionpolicy.Settings
	Connection *remote.Connection

	// Before is the summary that the reconcile began with. An event is recorded when it changes, and not at each attempt.
	Before string
	// Passed are the conditions that this reconcile found true, with their reasons.
	Passed map[string]metav1.Condition
	// Obstacle is what stopped the reconcile; nil when nothing did.
	Obstacle *obstacle.Obstacle
	// RetryAt is when the operator tries again after a failure; zero after none.
	RetryAt time.Time
	// Works is true when the Node was seen to be Ready and in service before anything was done.
	Works bool
	// KeyDiffers is true when the host was configured with another key than the present one, and its node works.
	// OnlyKeyDiffers is true when nothing else of it is to be changed.
	KeyDiffers, OnlyKeyDiffers bool
	// Moved is true when the address of a host whose node works leads to another IP address than the one at which the
	// host was reached last.
	Moved bool
	// AgentCheck is true when the host of a node that works is checked because its agent does not maintain it.
	AgentCheck bool
	// AgentCheckIn is the time until the next such check; zero for none.
	AgentCheckIn time.Duration
	// HandedOver is true when another instance has the same host, which therefore stays as it is.
	HandedOver bool
	// Unreached is true when the host was dialed and could not be connected to, and does not restart.
	Unreached bool
	// Renewal is why a certificate that is due could not be renewed; nil when nothing is in the way.
	Renewal *obstacle.Obstacle
	// PutBackIn is how long the operator waits before it puts back again what another writer keeps changing on the Node;
	// zero when it need not wait. Until then it also leaves out other writes to the Node that can wait.
	PutBackIn time.Duration
	// Finished is true when the phases have come to an end or to an obstacle.
	Finished bool
	// Silent is true when no status is to be written: the object is gone, or the operator ends, or has read nothing yet.
	Silent bool
}

// New returns the scope of a reconcile that begins.
func New(instance *v1alpha1.WindowsInstance, session *Session) *Scope {
	return &Scope{
		Instance: instance,
		Began:    instance.DeepCopy(),
		Stored:   instance.DeepCopy(),
		Session:  session,
		Before:   instance.Status.Summary,
		Passed:   map[string]metav1.Condition{},
	}
}

// Pass notes that a condition is true.
func (s *Scope) Pass(condition, message string) {
	s.Passed[condition] = metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, Message: message,
	}
}

// PassWhatHeld makes conditions True again that an obstacle before the connection has made False: the obstacle is gone,
// and the host was not touched since.
func (s *Scope) PassWhatHeld() {
	for _, condition := range Conditions {
		if !meta.IsStatusConditionTrue(s.Instance.Status.Conditions, condition) {
			s.Pass(condition, "This was true when the operator last worked on the host.")
		}
	}
}

// Awaited turns an obstacle into a wait that becomes a failure after the limit.
func (s *Scope) Awaited(now time.Time, what string, limit time.Duration, o *obstacle.Obstacle) *obstacle.Obstacle {
	rest := limit - now.Sub(s.Session.WaitingSince(what, now))
	if rest > 0 {
		o.Outcome, o.After = obstacle.Wait, rest
		return o
	}
	o.Message += " This has lasted longer than " + limit.String() + "."
	return o
}

// BYOH reports whether the host is listed in windows-instances.
func (s *Scope) BYOH() bool { return s.Instance.Spec.Source.ConfigMapKey != "" }

// OfMachine reports whether the host belongs to a Machine.
func (s *Scope) OfMachine() bool { return s.Instance.Spec.Source.Machine != nil }

// NodeName returns the claimed name; empty before the claim.
func (s *Scope) NodeName() string { return nodes.NameOf(s.Instance) }

// Waiter returns what ends a wait for the Node.
func (s *Scope) Waiter() nodes.Waiter {
	w := nodes.Waiter{Instance: s.Instance, Began: s.Began}
	if s.Connection != nil {
		w.Lost = s.Connection.Done()
	}
	return w
}

// KeptNodeName returns the name of the Node that a Machine's host has already; empty when there is none. It can differ
// from the host's name: the kubelet gets the node name as a flag, and older operators set it too.
func (s *Scope) KeptNodeName() string {
	if ref := s.Instance.Status.NodeRef; s.OfMachine() && ref != nil && ref.Confirmed && ref.UID != "" {
		return ref.Name
	}
	return ""
}

// Released reports whether the node was handed to the scheduler before.
func (s *Scope) Released(node *corev1.Node) bool {
	return node.Annotations[v1alpha1.AnnotationInstance] == s.Instance.Name && !nodeidentity.Unproven(node)
}

// HostAsItWas reports whether the host is unchanged since its node was proven.
func (s *Scope) HostAsItWas() bool {
	return s.Instance.Status.SpecDigest != "" && s.Instance.Status.RequestedReboot == nil
}

// MidChange reports whether the instance has a node whose host was begun with and is not proven since: others wait for
// its turn, and its pods are elsewhere.
func (s *Scope) MidChange() bool {
	ref := s.Instance.Status.NodeRef
	return ref != nil && ref.UID != "" && !s.HostAsItWas()
}
