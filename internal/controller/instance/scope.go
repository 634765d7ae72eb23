package instance

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/disruptionpolicy"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// scope is what the phases of one reconcile share.
type scope struct {
	*Reconciler
	instance *v1alpha1.WindowsInstance
	original *v1alpha1.WindowsInstance

	key        sshkey.Key
	cluster    nodespec.Cluster
	settings   disruptionpolicy.Settings
	connection *remote.Connection
	session    *session

	// before is the summary that the reconcile began with. An event is told when it changes, and not at each attempt.
	before string
	// passed are the conditions that this reconcile found true, with their reasons.
	passed map[string]metav1.Condition
	// obstacle is what stopped the reconcile; nil when nothing did.
	obstacle *obstacle
	// works is true when the Node was seen to be Ready and in service before anything was done.
	works bool
	// keyDiffers is true when the host was configured with another key than the present one, and its node works. onlyKeyDiffers is true
	// when it is what it should be but for that.
	keyDiffers, onlyKeyDiffers bool
	// handedOver is true when another instance has the same host, which therefore stays as it is.
	handedOver bool
	// renewal is why a certificate that is due could not be renewed; nil when nothing is in the way.
	renewal *obstacle
	// finished is true when the phases have come to an end or to an obstacle.
	finished bool
	// silent is true when no status is to be written: the object is gone, or the operator ends, or has read nothing yet.
	silent  bool
	retryAt time.Time
}

// obstacle is why an instance is not further.
type obstacle struct {
	phase string
	// condition is the one that is not True because of it.
	condition string
	reason    string
	// message says what is wrong in words for an administrator; next says what happens next or what to do.
	message string
	next    string
	outcome outcome
	// keepsTurn is true when the instance keeps its turn at the gate: the obstacle belongs to the work on a node that has it, or passes by itself.
	keepsTurn bool
	// atGate is true when the gate has refused: a change of the policy, or of what is being disturbed, may end that.
	atGate bool
	// keyRefused is true when the host did not accept the operator's key.
	keyRefused bool
	// replaces is true when the Machine is to be replaced for this version of the operator.
	replaces bool
	// after is when to look again at the latest; zero waits for an event (or the retry delay).
	after time.Duration
	err   error
}

func (r *Reconciler) newScope(instance *v1alpha1.WindowsInstance) *scope {
	return &scope{
		Reconciler: r,
		instance:   instance,
		original:   instance.DeepCopy(),
		session:    r.sessions.of(instance.Name),
		before:     instance.Status.Summary,
		passed:     map[string]metav1.Condition{},
	}
}

// aside moves the obstacle of a phase that has nothing to do with the node itself out of the way of Ready: a missing key, an unreadable cluster, a
// pause, a cluster that may have no more Windows nodes or a new key that the host does not know yet keep the operator from watching over a node
// that works, and no more.
func (s *scope) aside(p phase, o *obstacle) *obstacle {
	if p.keepsReady == nil || !p.keepsReady(s) || o.outcome == nothingToDo || s.instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved ||
		s.instance.Status.SpecDigest == "" || !meta.IsStatusConditionTrue(s.instance.Status.Conditions, v1alpha1.ConditionReady) {
		return o
	}
	o.condition = v1alpha1.ConditionUpToDate
	return o
}

// pass notes that a condition is true.
func (s *scope) pass(condition, message string) {
	s.passed[condition] = metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, Message: message,
	}
}

// byoh reports whether the host is listed in windows-instances.
func (s *scope) byoh() bool { return s.instance.Spec.Source.ConfigMapKey != "" }

// ofMachine reports whether the host is that of a Machine.
func (s *scope) ofMachine() bool { return s.instance.Spec.Source.Machine != nil }

// nodeName is the claimed name; empty before the claim.
func (s *scope) nodeName() string {
	if s.instance.Status.NodeRef == nil {
		return ""
	}
	return s.instance.Status.NodeRef.Name
}
