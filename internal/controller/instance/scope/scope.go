// Package scope defines the data shared by the phases of one reconcile of an instance. It performs no I/O of its
// own.
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

// Conditions are the condition types of an instance, in the order of the phases. Ready and UpToDate are last.
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

// Scope is the data shared by the phases of one reconcile.
type Scope struct {
	Instance *v1alpha1.WindowsInstance
	// Initial is the instance at the start of the reconcile. Instance may have a later spec, because each write
	// returns the current one.
	Initial *v1alpha1.WindowsInstance
	// Stored is the last known version of the instance on the API server.
	Stored *v1alpha1.WindowsInstance
	// Session is the state of earlier reconciles. It is kept after the status was written.
	Session *Session
	// Host is the view of the host, and accepts requests for jobs.
	Host *hostjobs.Host
	// Clock is the clock of the operator.
	Clock clock.PassiveClock

	Key      sshkey.Key
	Cluster  nodespec.Cluster
	Settings disruptionpolicy.Settings

	// InitialSummary is the summary at the start of the reconcile. An event is recorded when the summary changes, not at
	// each attempt.
	InitialSummary string
	// ObservedConditions are the conditions that this reconcile has determined, by type.
	ObservedConditions map[string]metav1.Condition
	// Result is the result that ended the reconcile; nil for none.
	Result *result.Result
	// RetryAt is the time of the retry after a failure; zero for none.
	RetryAt time.Time
	// NodeInService is true if the Node was Ready and in service at the start of the reconcile.
	NodeInService bool
	// KeyDiffers is true if the node works and its host was configured with a key other than the current one.
	// OnlyKeyDiffers is true if nothing else must change.
	KeyDiffers, OnlyKeyDiffers bool
	// AddressChanged is true if the node works and the address of its host resolves to an IP address other than the last
	// one used.
	AddressChanged bool
	// AgentCheck is true if the host of a working node is checked because the agent does not maintain the host.
	AgentCheck bool
	// AgentCheckDelay is the time until the next such check; zero for none.
	AgentCheckDelay time.Duration
	// HostTransferred is true if a removal keeps the host and its Node, because another instance manages the same host.
	HostTransferred bool
	// SlotReleasePending is true if the disruption of the node has ended. The slot is released after the status was
	// written.
	SlotReleasePending bool
	// Renewal is the result that blocks the renewal of a certificate; nil for none.
	Renewal *result.Result
	// RevertBackoff is the delay before the operator again reverts fields that another writer keeps changing on the
	// Node; zero for none. Until then, the operator also postpones other writes to the Node that are not urgent.
	RevertBackoff time.Duration
	// Restarted is true if the host has restarted, so the preparation of the host must be verified again.
	Restarted bool
	// Instances and Machines are the lists read by the reconcile.
	Instances *queue.Listing[v1alpha1.WindowsInstance]
	Machines  *queue.Listing[machinev1beta1.Machine]
	// StatusWritten is true if the status was written.
	StatusWritten bool
	// Deleted is true if the instance was deleted.
	Deleted bool
	// SkipStatusWrite is true if no status must be written: the object no longer exists, the operator stops, or nothing
	// was read yet.
	SkipStatusWrite bool
}

// New returns the scope of a new reconcile.
func New(instance *v1alpha1.WindowsInstance, session *Session, host *hostjobs.Host, clock clock.PassiveClock) *Scope {
	stored := instance.DeepCopy()
	if session.Unwritten != nil && session.Base == instance.ResourceVersion {
		session.Unwritten.DeepCopyInto(&instance.Status)
	}
	return &Scope{
		Instance:           instance,
		Initial:            instance.DeepCopy(),
		Stored:             stored,
		Session:            session,
		Host:               host,
		Clock:              clock,
		InitialSummary:     instance.Status.Summary,
		ObservedConditions: map[string]metav1.Condition{},
	}
}

// RequestSlotRelease ends the disruption of the node by this operator after the status was written. Another running
// operator may be about to drain the node, and ends its own disruption.
func (s *Scope) RequestSlotRelease() {
	s.Session.PendingDisruption, s.Session.DrainStart, s.SlotReleasePending = "", time.Time{}, true
}

// KeepUnwritten keeps the unwritten status for the next reconcile.
func (s *Scope) KeepUnwritten() {
	s.Session.Unwritten = nil
	if !equality.Semantic.DeepEqual(s.Instance.Status, s.Stored.Status) {
		s.Session.Unwritten, s.Session.Base = s.Instance.Status.DeepCopy(), s.Stored.ResourceVersion
	}
}

// MarkTrue records that a condition is true.
func (s *Scope) MarkTrue(condition, message string) {
	s.ObservedConditions[condition] = metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, Message: message,
	}
}

// RestoreTrueConditions sets conditions to True that a result before the connection had set to False. That result is
// resolved, and the host was not changed since.
func (s *Scope) RestoreTrueConditions() {
	for _, condition := range Conditions {
		if !meta.IsStatusConditionTrue(s.Instance.Status.Conditions, condition) {
			s.MarkTrue(condition, "This was true at the last check of the host.")
		}
	}
}

// WithTimeout converts a result into a wait that becomes a failure after the limit.
func (s *Scope) WithTimeout(now time.Time, what string, limit time.Duration, o *result.Result) *result.Result {
	rest := limit - now.Sub(s.Session.WaitingSince(what, now))
	if rest > 0 {
		o.Outcome, o.RequeueAfter = result.Wait, rest
		return o
	}
	o.Message += " The operator has waited longer than " + limit.String() + "."
	return o
}

// IsBYOH reports whether the host is listed in windows-instances.
func (s *Scope) IsBYOH() bool { return s.Instance.Spec.Source.ConfigMapKey != "" }

// HasMachine reports whether the host belongs to a Machine.
func (s *Scope) HasMachine() bool { return s.Instance.Spec.Source.Machine != nil }

// NodeName returns the claimed name; empty before the claim.
func (s *Scope) NodeName() string { return NodeNameOf(s.Instance) }

// NodeNameOf returns the node name that an instance has claimed; empty before the claim.
func NodeNameOf(instance *v1alpha1.WindowsInstance) string {
	if instance.Status.NodeRef == nil {
		return ""
	}
	return instance.Status.NodeRef.Name
}

// ExistingNodeName returns the name of the existing Node of a Machine's host; empty for none. The name can differ
// from the host name: the kubelet gets the node name as a flag, and legacy operators set the flag too.
func (s *Scope) ExistingNodeName() string {
	if ref := s.Instance.Status.NodeRef; s.HasMachine() && ref != nil && ref.Confirmed && ref.UID != "" {
		return ref.Name
	}
	return ""
}

// WasActivated reports whether the node was activated before.
func (s *Scope) WasActivated(node *corev1.Node) bool {
	return node.Annotations[v1alpha1.AnnotationInstance] == s.Instance.Name && !nodeidentity.HasStartupTaint(node)
}

// IsHostUnchanged reports whether the host is unchanged since its node was verified.
func (s *Scope) IsHostUnchanged() bool {
	return s.Instance.Status.SpecDigest != "" && s.Instance.Status.RequestedReboot == nil
}

// IsChangeInProgress reports whether the instance has a node with a host that was changed and not verified since. Other
// nodes wait for the disruption slot of the node, and its pods run elsewhere.
func (s *Scope) IsChangeInProgress() bool {
	ref := s.Instance.Status.NodeRef
	return ref != nil && ref.UID != "" && !s.IsHostUnchanged()
}
