// Package scope holds the data that the phases of one reconcile of an instance share. It reads and writes nothing else.
package scope

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
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
	// Session is what earlier reconciles have noted. It is kept after the status was written.
	Session *Session
	// Host is what is known of the host, and what may be requested of it.
	Host *hostjobs.Host
	// Clock is the operator's.
	Clock clock.PassiveClock

	Key      sshkey.Key
	Cluster  nodespec.Cluster
	Settings disruptionpolicy.Settings

	// Before is the summary that the reconcile began with. An event is recorded when it changes, and not at each attempt.
	Before string
	// Passed are the conditions that this reconcile found true, with their reasons.
	Passed map[string]metav1.Condition
	// Result is what stopped the reconcile; nil when nothing did.
	Result *result.Result
	// RetryAt is when the operator retries after a failure; zero after none.
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
	// LeavesGate is true if the disruption of the node has ended. The gate is left after the status was written.
	LeavesGate bool
	// Renewal is why a certificate that is due could not be renewed; nil when nothing is in the way.
	Renewal *result.Result
	// PutBackIn is how long the operator waits before it puts back again what another writer keeps changing on the Node;
	// zero when it need not wait. Until then it also leaves out other writes to the Node that can wait.
	PutBackIn time.Duration
	// Restarted is true if the host is back from a restart, so that what was prepared before must be seen again.
	Restarted bool
	// Instances and Machines are the lists that the reconcile has read.
	Instances *queue.Listing[v1alpha1.WindowsInstance]
	Machines  *queue.Listing[machinev1beta1.Machine]
	// Wrote is true if the status was written.
	Wrote bool
	// Deleted is true if the instance was deleted.
	Deleted bool
	// Silent is true when no status is to be written: the object is gone, or the operator ends, or has read nothing yet.
	Silent bool
}

// New returns the scope of a reconcile that begins.
func New(instance *v1alpha1.WindowsInstance, session *Session, host *hostjobs.Host, clock clock.PassiveClock) *Scope {
	stored := instance.DeepCopy()
	if session.Unwritten != nil && session.Base == instance.ResourceVersion {
		session.Unwritten.DeepCopyInto(&instance.Status)
	}
	return &Scope{
		Instance: instance,
		Began:    instance.DeepCopy(),
		Stored:   stored,
		Session:  session,
		Host:     host,
		Clock:    clock,
		Before:   instance.Status.Summary,
		Passed:   map[string]metav1.Condition{},
	}
}

// LeaveGate ends the disturbance of the node, if this operator has one, after the status was written. Another operator that runs
// may be about to drain the node, and ends its own.
func (s *Scope) LeaveGate() { s.Session.Turn, s.Session.Drains, s.LeavesGate = "", time.Time{}, true }

// KeepUnwritten notes the status that is not written yet, for the next reconcile.
func (s *Scope) KeepUnwritten() {
	s.Session.Unwritten = nil
	if !equality.Semantic.DeepEqual(s.Instance.Status, s.Stored.Status) {
		s.Session.Unwritten, s.Session.Base = s.Instance.Status.DeepCopy(), s.Stored.ResourceVersion
	}
}

// Pass notes that a condition is true.
func (s *Scope) Pass(condition, message string) {
	s.Passed[condition] = metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, Message: message,
	}
}

// PassWhatHeld makes conditions True again that a result before the connection has made False: the result is gone,
// and the host was not touched since.
func (s *Scope) PassWhatHeld() {
	for _, condition := range Conditions {
		if !meta.IsStatusConditionTrue(s.Instance.Status.Conditions, condition) {
			s.Pass(condition, "This was true when the operator last worked on the host.")
		}
	}
}

// Awaited turns a result into a wait that becomes a failure after the limit.
func (s *Scope) Awaited(now time.Time, what string, limit time.Duration, o *result.Result) *result.Result {
	rest := limit - now.Sub(s.Session.WaitingSince(what, now))
	if rest > 0 {
		o.Outcome, o.After = result.Wait, rest
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
func (s *Scope) NodeName() string { return NodeNameOf(s.Instance) }

// NodeNameOf returns the node name that an instance has claimed; empty before the claim.
func NodeNameOf(instance *v1alpha1.WindowsInstance) string {
	if instance.Status.NodeRef == nil {
		return ""
	}
	return instance.Status.NodeRef.Name
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
