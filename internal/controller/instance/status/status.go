// Package status writes the status for administrators: the conditions, the summary, the next action and the
// progress of an instance, and the events about the instance. No other package of the controller writes this
// text, and no decision depends on it. Decisions read the typed fields of the status, which are set by the code
// that finds the facts.
package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Writer writes the status of instances.
type Writer struct {
	Client    client.Client
	Events    Recorder
	Clock     clock.PassiveClock
	Namespace string // of the instances
	Version   string // of the operator
	// ProgressLimiter limits the rate of progress writes for all hosts together; nil for no limit.
	ProgressLimiter *ProgressLimiter
}

// Write writes the result of a reconcile. A result that is not shown yet leaves the conditions and the summary
// unchanged. State that must be written before the operator continues is always written. Write returns how long
// the result remains hidden. If the instance has changed since it was read, the API server rejects the write with
// a conflict.
func (w Writer) Write(ctx context.Context, s *scope.Scope) (quiet time.Duration, err error) {
	if s.SkipStatusWrite {
		return 0, nil
	}
	status, o := &s.Instance.Status, s.Result
	if s.Restarted {
		w.resetPrepared(s)
	}
	if quiet = w.remainingStatusDelay(s, o); quiet > 0 {
		if !needsWrite(&s.Stored.Status, status) {
			return quiet, nil
		}
		if o.Step != "" {
			w.setStep(s, hostjobs.Step{Name: o.Step})
			w.setProgressSummary(s, o)
		}
		return quiet, w.patchStatus(ctx, s)
	}
	if o != nil && o.Outcome == result.Working {
		w.setStep(s, hostjobs.Step{Name: o.Step})
		w.setProgressSummary(s, o)
		return 0, w.patchStatus(ctx, s)
	}
	status.ObservedGeneration = s.Instance.Generation
	w.updateConditions(ctx, s, o)
	if status.RestartStartedAt == nil { // only a restart continues after its command
		status.Step = nil
	}
	if !s.RetryAt.IsZero() {
		status.NextAction = fmt.Sprintf("%s The operator retries at %s.", status.NextAction,
			s.RetryAt.UTC().Format("15:04:05 UTC"))
	}
	return 0, w.patchStatus(ctx, s)
}

// remainingStatusDelay returns the time until a result is shown.
func (w Writer) remainingStatusDelay(s *scope.Scope, o *result.Result) time.Duration {
	now, memory := w.Clock.Now(), s.Session
	if o == nil || o.StatusDelay == 0 {
		memory.HiddenResult = ""
		return 0
	}
	if name := o.Condition + " " + o.Reason + " " + o.Step; memory.HiddenResult != name {
		memory.HiddenResult, memory.HiddenSince = name, now
	}
	return o.StatusDelay - now.Sub(memory.HiddenSince)
}

// needsWrite reports whether the status has a change that must be written before the operator continues.
func needsWrite(stored, status *v1alpha1.WindowsInstanceStatus) bool {
	started := status.RestartStartedAt != nil && !status.RestartStartedAt.Equal(stored.RestartStartedAt)
	return started || stored.SpecDigest != status.SpecDigest || stored.RegistrationID != status.RegistrationID || stored.Version != status.Version ||
		!reflect.DeepEqual(stored.HostKey, status.HostKey) || !isSameClaim(stored.NodeRef, status.NodeRef) ||
		!reflect.DeepEqual(stored.RequestedReboot, status.RequestedReboot) || !reflect.DeepEqual(stored.FailedChange, status.FailedChange)
}

// updateConditions computes the conditions, and emits an event if other hosts have the host's key.
func (w Writer) updateConditions(ctx context.Context, s *scope.Scope, o *result.Result) {
	status := &s.Instance.Status
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReachable)
	told := ""
	if before != nil {
		told = before.Message
	}
	upToDate := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionUpToDate)
	setConditions(status, s.ObservedConditions, o, s.Instance.Generation, w.Clock.Now())
	status.Readiness = computeReadiness(status, upToDate, w.Clock.Now())
	w.setDecisionFields(s, o)
	reachable := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReachable)
	if reachable.Status != metav1.ConditionTrue {
		return
	}
	reuse := w.describeHostKeyReuse(ctx, s.Instance)
	reachable.Message = nodeidentity.WithReuse(reachable.Message, reuse)
	if reuse != "" && !strings.HasSuffix(told, reuse) {
		w.Events.Emit(HostKeyReusedEvent(s.Instance, reuse))
	}
}

// setDecisionFields sets the fields that the next reconcile and other controllers use for decisions. Decisions never
// depend on conditions or their messages.
func (w Writer) setDecisionFields(s *scope.Scope, o *result.Result) {
	status := &s.Instance.Status
	if o == nil {
		o = &result.Result{Outcome: result.Done}
	}
	if o.Outcome == result.Unmanaged {
		return // not checked
	}
	status.DisruptionPending, status.SSHKeyRejected, status.ReplacementVersion = o.RefusedByGate, o.SSHKeyRejected, ""
	if o.NeedsReplacement {
		status.ReplacementVersion = w.Version
	}
}

// computeReadiness returns the state of the conditions for decisions. upToDate is the previous status of UpToDate.
func computeReadiness(status *v1alpha1.WindowsInstanceStatus, upToDate bool, now time.Time) *v1alpha1.Readiness {
	ready := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady)
	broughtUpToDate := !upToDate && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionUpToDate)
	if status.Readiness == nil || status.Readiness.Ready != ready || ready && broughtUpToDate {
		return &v1alpha1.Readiness{Ready: ready, Since: metav1.NewTime(now)}
	}
	return status.Readiness
}

// patchStatus writes the difference to the stored status, if any. The precondition is the version of the instance that
// the reconcile has read. The version also prevents a write to another instance of the same name: the API server
// ignores a UID in a patch of the status of a custom resource.
func (w Writer) patchStatus(ctx context.Context, s *scope.Scope) error {
	if same, err := isSameJSON(&s.Stored.Status, &s.Instance.Status); same || err != nil {
		return err
	}
	// A stopped reconcile still reports its changes.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	written := s.Instance.DeepCopy()
	err := w.Client.Status().Patch(ctx, written, client.MergeFromWithOptions(s.Stored, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write status of WindowsInstance %s for host %s: %w", s.Instance.Name,
			s.Instance.Spec.Address, err))
	}
	s.Session.LastWrite, s.Session.Written = w.Clock.Now(), written
	s.Session.LiveVersion, s.Session.LiveVersionAt = written.ResourceVersion, w.Clock.Now()
	s.Stored, s.StatusWritten = written, true
	return nil
}

// isSameClaim reports whether two statuses have the same claim to a node name. The UID of the Node can wait for the
// next write.
func isSameClaim(a, b *v1alpha1.NodeReference) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.Confirmed == b.Confirmed && a.ClaimedAt.Equal(b.ClaimedAt)
}

// isSameJSON reports whether the API server would store two statuses identically. Fractions of a second are lost on
// a write.
func isSameJSON(a, b *v1alpha1.WindowsInstanceStatus) (bool, error) {
	if reflect.DeepEqual(a, b) {
		return true, nil
	}
	first, err1 := json.Marshal(a)
	second, err2 := json.Marshal(b)
	return bytes.Equal(first, second), errors.Join(err1, err2)
}
