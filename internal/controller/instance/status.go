package instance

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/hostkey"
)

// way is the order in which conditions become true. Ready and UpToDate come last.
var way = [...]string{
	v1alpha1.ConditionReachable,
	v1alpha1.ConditionSupported,
	v1alpha1.ConditionPrepared,
	v1alpha1.ConditionInstalled,
	v1alpha1.ConditionJoined,
	v1alpha1.ConditionNetworkReady,
	v1alpha1.ConditionReady,
	v1alpha1.ConditionUpToDate,
}

// writeStatus computes the whole status and writes it if it differs.
func (s *scope) writeStatus(ctx context.Context) error {
	if s.silent {
		return nil
	}
	status := &s.instance.Status
	status.ObservedGeneration = s.instance.Generation
	s.summarize(ctx, s.obstacle)
	if s.obstacle == nil || s.obstacle.outcome == nothingToDo || s.obstacle.outcome.isFailure() {
		status.Step = nil
	}
	if !s.retryAt.IsZero() {
		status.NextAction = fmt.Sprintf("%s The operator tries again at %s.", status.NextAction, s.retryAt.UTC().Format("15:04:05 UTC"))
	}
	return s.patchStatus(ctx)
}

// show writes an obstacle that this very reconcile is about to clear away.
func (s *scope) show(ctx context.Context, o *obstacle) error {
	s.summarize(ctx, o)
	return s.patchStatus(ctx)
}

// summarize computes the conditions, and tells when other hosts have the host's key.
func (s *scope) summarize(ctx context.Context, o *obstacle) {
	status := &s.instance.Status
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReachable)
	told := ""
	if before != nil {
		told = before.Message
	}
	summarize(status, s.passed, o, s.instance.Generation, s.Clock.Now())
	s.remember(o)
	reachable := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReachable)
	if reachable.Status != metav1.ConditionTrue {
		return
	}
	reuse := s.hostKeyReuse(ctx)
	reachable.Message = hostkey.WithReuse(reachable.Message, reuse)
	if reuse != "" && !strings.HasSuffix(told, reuse) {
		s.emit(hostKeyReused(s.instance, reuse))
	}
}

// remember keeps what the next reconcile and other controllers decide by. They read these fields, and never conditions or their words.
func (s *scope) remember(o *obstacle) {
	status := &s.instance.Status
	if o == nil {
		o = &obstacle{outcome: nothingToDo}
	}
	if o.outcome == leftAlone {
		return // nobody looks
	}
	status.WaitsForTurn, status.KeyRefused, status.AwaitsVersion = o.atGate, o.keyRefused, ""
	if o.replaces {
		status.AwaitsVersion = s.Version
	}
}

// patchStatus writes what differs from the last written status, and nothing when nothing does.
func (s *scope) patchStatus(ctx context.Context) error {
	if reflect.DeepEqual(s.original.Status, s.instance.Status) {
		return nil
	}
	// A reconcile that was stopped still tells what it did.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	written := s.instance.DeepCopy()
	if err := s.Client.Status().Patch(ctx, written, client.MergeFrom(s.original)); err != nil {
		return client.IgnoreNotFound(hostError("write status of WindowsInstance "+s.instance.Name, s.instance, err))
	}
	status := s.instance.Status
	s.original = written
	s.instance = written.DeepCopy()
	s.instance.Status = status
	return nil
}

// summarize sets every condition on every pass: what this pass found true, what stands in the way, and what is not known because of
// it. A condition that was true and was not looked at stays true; one that was false is not known any more.
func summarize(status *v1alpha1.WindowsInstanceStatus, passed map[string]metav1.Condition, o *obstacle, generation int64, now time.Time) {
	blocked := ""
	for _, conditionType := range way {
		condition, found := passed[conditionType]
		previous := meta.FindStatusCondition(status.Conditions, conditionType)
		switch {
		case previous != nil && o.leaves(conditionType):
			condition = *previous
		case o != nil && o.outcome != nothingToDo && o.condition == conditionType:
			blocked = conditionType
			condition = metav1.Condition{Status: o.status(), Reason: o.reason, Message: o.message}
		case found:
		case conditionType == v1alpha1.ConditionReady && blocked != "":
			condition = metav1.Condition{Status: metav1.ConditionFalse, Reason: o.reason, Message: o.message}
		case previous != nil && previous.Status == metav1.ConditionTrue && (blocked == "" || conditionType != v1alpha1.ConditionUpToDate):
			condition = *previous
		case blocked != "":
			condition = metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotYet, Message: "Known once " + blocked + " is true."}
		default:
			condition = metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotYet, Message: "Not looked at yet."}
		}
		condition.Type, condition.ObservedGeneration = conditionType, generation
		condition.Message = plain(condition.Message, longestMessage)
		condition.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	switch {
	case o == nil || o.outcome == nothingToDo:
		status.Summary, status.NextAction = v1alpha1.ReasonReady, ""
	default:
		status.Summary, status.NextAction = o.reason, plain(o.next, longestMessage)
	}
}

// leaves reports whether the obstacle leaves a condition as it is. A nil one does not.
func (o *obstacle) leaves(condition string) bool {
	return o != nil && o.outcome == leftAlone && o.condition != condition
}

// status is that of the condition which the obstacle is in the way of.
func (o *obstacle) status() metav1.ConditionStatus {
	if o.outcome == leftAlone {
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

// longestMessage keeps what comes from hosts and libraries within what the API server takes and people read, in bytes.
const longestMessage = 2048
