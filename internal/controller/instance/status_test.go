package instance

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func statusAfter(status v1alpha1.WindowsInstanceStatus, passed []string, o *obstacle) v1alpha1.WindowsInstanceStatus {
	found := map[string]metav1.Condition{}
	for _, condition := range passed {
		found[condition] = metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded}
	}
	summarize(&status, found, o, 1, noon)
	return status
}

func TestSummarizeSetsEveryConditionOnEveryPass(t *testing.T) {
	unreachable := &obstacle{condition: v1alpha1.ConditionReachable, reason: "Unreachable", message: "connection refused", next: "Start sshd."}

	t.Run("a host that cannot be reached says so, and nothing else is known", func(t *testing.T) {
		status := statusAfter(v1alpha1.WindowsInstanceStatus{}, nil, unreachable)
		want := map[string]metav1.ConditionStatus{
			v1alpha1.ConditionReachable: metav1.ConditionFalse, v1alpha1.ConditionSupported: metav1.ConditionUnknown,
			v1alpha1.ConditionPrepared: metav1.ConditionUnknown, v1alpha1.ConditionInstalled: metav1.ConditionUnknown,
			v1alpha1.ConditionJoined: metav1.ConditionUnknown, v1alpha1.ConditionNetworkReady: metav1.ConditionUnknown,
			v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionUpToDate: metav1.ConditionUnknown,
		}
		for _, condition := range way {
			got := meta.FindStatusCondition(status.Conditions, condition)
			if got == nil || got.Status != want[condition] || got.Reason == "" || got.Message == "" {
				t.Errorf("condition %s is %+v, want status %s with reason and message", condition, got, want[condition])
			}
		}
		if status.Summary != "Unreachable" || status.NextAction != "Start sshd." {
			t.Errorf("summary %q, next action %q", status.Summary, status.NextAction)
		}
	})

	t.Run("a Ready host that is lost keeps what was proven before, but is not Ready", func(t *testing.T) {
		ready := statusAfter(v1alpha1.WindowsInstanceStatus{}, way[:], nil)
		lost := statusAfter(ready, nil, unreachable)
		if !meta.IsStatusConditionTrue(lost.Conditions, v1alpha1.ConditionInstalled) {
			t.Error("Installed is no longer true")
		}
		if got := meta.FindStatusCondition(lost.Conditions, v1alpha1.ConditionReady); got.Status != metav1.ConditionFalse || got.Reason != "Unreachable" {
			t.Errorf("Ready is %+v", got)
		}
	})

	t.Run("a pass with nothing to do changes nothing", func(t *testing.T) {
		ready := statusAfter(v1alpha1.WindowsInstanceStatus{}, way[:], nil)
		again := statusAfter(*ready.DeepCopy(), []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate}, &obstacle{outcome: nothingToDo})
		for i, condition := range again.Conditions {
			if condition.Status != ready.Conditions[i].Status || condition.LastTransitionTime != ready.Conditions[i].LastTransitionTime {
				t.Errorf("condition %s became %+v", condition.Type, condition)
			}
		}
		if again.Summary != v1alpha1.ReasonReady {
			t.Errorf("summary is %q", again.Summary)
		}
	})
}

func TestRetriesSlowDownToOneAMinute(t *testing.T) {
	for attempt, want := range map[int]time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 4: 16 * time.Second, 6: time.Minute, 1000: time.Minute} {
		if got := retryDelay(attempt, 0); got != want {
			t.Errorf("attempt %d waits %s, want %s", attempt, got, want)
		}
	}
	if got := retryDelay(6, 0.999); got < 48*time.Second || got > time.Minute {
		t.Errorf("a spread delay is %s, want within a fifth below a minute", got)
	}
}

func TestTransferred(t *testing.T) {
	for name, c := range map[string]struct {
		done, total, sent int64
		in                time.Duration
		want              string
	}{
		"at its beginning":             {500_000, 62_000_000, 500_000, time.Millisecond, "0.5 of 62.0 MB"},
		"under way":                    {20_000_000, 62_000_000, 20_000_000, 4 * time.Second, "20.0 of 62.0 MB, 5.0 MB/s"},
		"going on where it was cut":    {42_000_000, 62_000_000, 2_000_000, 4 * time.Second, "42.0 of 62.0 MB, 0.5 MB/s"},
		"to a host that takes nothing": {1_000_000, 62_000_000, 0, time.Minute, "1.0 of 62.0 MB, 0.0 MB/s"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := transferred(c.done, c.total, c.sent, c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
