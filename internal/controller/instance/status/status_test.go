package status

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func statusAfter(status v1alpha1.WindowsInstanceStatus, passed []string,
	o *obstacle.Obstacle) v1alpha1.WindowsInstanceStatus {
	found := map[string]metav1.Condition{}
	for _, condition := range passed {
		found[condition] = metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded}
	}
	summarize(&status, found, o, 1, noon)
	return status
}

func TestSummarizeSetsEveryConditionOnEveryPass(t *testing.T) {
	unreachable := &obstacle.Obstacle{Condition: v1alpha1.ConditionReachable, Reason: "Unreachable",
		Message: "connection refused", Next: "Start sshd."}

	t.Run("a host that cannot be reached says so, and nothing else is known", func(t *testing.T) {
		after := statusAfter(v1alpha1.WindowsInstanceStatus{}, nil, unreachable)
		want := map[string]metav1.ConditionStatus{
			v1alpha1.ConditionReachable: metav1.ConditionFalse, v1alpha1.ConditionSupported: metav1.ConditionUnknown,
			v1alpha1.ConditionPrepared: metav1.ConditionUnknown, v1alpha1.ConditionInstalled: metav1.ConditionUnknown,
			v1alpha1.ConditionJoined: metav1.ConditionUnknown, v1alpha1.ConditionNetworkReady: metav1.ConditionUnknown,
			v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionUpToDate: metav1.ConditionUnknown,
		}
		for _, condition := range scope.Conditions {
			got := meta.FindStatusCondition(after.Conditions, condition)
			if got == nil || got.Status != want[condition] || got.Reason == "" || got.Message == "" {
				t.Errorf("condition %s is %+v, want status %s with reason and message", condition, got, want[condition])
			}
		}
		if after.Summary != "Unreachable" || after.NextAction != "Start sshd." {
			t.Errorf("summary %q, next action %q", after.Summary, after.NextAction)
		}
	})

	t.Run("a Ready host that is lost keeps what was proven before, but is not Ready", func(t *testing.T) {
		ready := statusAfter(v1alpha1.WindowsInstanceStatus{}, scope.Conditions[:], nil)
		lost := statusAfter(ready, nil, unreachable)
		if !meta.IsStatusConditionTrue(lost.Conditions, v1alpha1.ConditionInstalled) {
			t.Error("Installed is no longer true")
		}
		if got := meta.FindStatusCondition(lost.Conditions, v1alpha1.ConditionReady); got.Status != metav1.ConditionFalse ||
			got.Reason != "Unreachable" {
			t.Errorf("Ready is %+v", got)
		}
	})

	t.Run("a pass with nothing to do changes nothing", func(t *testing.T) {
		ready := statusAfter(v1alpha1.WindowsInstanceStatus{}, scope.Conditions[:], nil)
		again := statusAfter(*ready.DeepCopy(), []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate},
			&obstacle.Obstacle{Outcome: obstacle.NothingToDo})
		for i, condition := range again.Conditions {
			if condition.Status != ready.Conditions[i].Status ||
				condition.LastTransitionTime != ready.Conditions[i].LastTransitionTime {
				t.Errorf("condition %s became %+v", condition.Type, condition)
			}
		}
		if again.Summary != v1alpha1.ReasonReady {
			t.Errorf("summary is %q", again.Summary)
		}
	})
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

func TestProgressIsWrittenAsOftenAsAPersonLooks(t *testing.T) {
	for name, c := range map[string]struct {
		last time.Time
		want bool
	}{
		"when nothing was written yet":     {time.Time{}, true},
		"not right after a write":          {noon, false},
		"not four seconds after a write":   {noon.Add(-4 * time.Second), false},
		"five seconds after the last one":  {noon.Add(-5 * time.Second), true},
		"after a clock that was set back":  {noon.Add(time.Hour), false},
		"an hour after the last write":     {noon.Add(-time.Hour), true},
		"not a moment before five seconds": {noon.Add(-5*time.Second + 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := progressDue(c.last, noon); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A host waits in a line, is drained or is asked for its facts for minutes, and nothing says so a second time.
func TestAStepOfTheOperatorsOwnIsWrittenAtOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: "win-1"}}
	writes := 0
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(instance).WithObjects(instance).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, api client.Client, of string,
			object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			writes++
			return api.SubResource(of).Patch(ctx, object, patch, options...)
		}}).Build()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(instance), instance); err != nil {
		t.Fatal(err)
	}
	w := Writer{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(noon)}
	s := scope.New(instance, &scope.Session{})
	expect := func(step string, total int) {
		t.Helper()
		var stored v1alpha1.WindowsInstance
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(instance), &stored); err != nil {
			t.Fatal(err)
		}
		if got := stored.Status.Step; got == nil || got.Name != step || writes != total {
			t.Errorf("after %d writes the step is %+v; want %s after %d", writes, got, step, total)
		}
	}
	w.Progress(t.Context(), s, "StartService kubelet", 1, 2, "")
	expect("StartService kubelet", 1)
	w.Progress(t.Context(), s, "StartService kube-proxy", 2, 2, "")
	expect("StartService kubelet", 1)
	w.Step(t.Context(), s, "DrainNode", "evicting pods")
	expect("DrainNode", 2)
	w.Step(t.Context(), s, "DrainNode", "evicting pods")
	expect("DrainNode", 2)
}

// withInstance returns an API server in memory with an instance.
func withInstance(t *testing.T) (client.Client, *v1alpha1.WindowsInstance) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: "win-1"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(instance).WithObjects(instance).Build()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(instance), instance); err != nil {
		t.Fatal(err)
	}
	return api, instance
}

// An operator that no longer leads writes what it found when it ends. The present one writes its own whole, also what it
// found to be as before.
func TestSummaryAndConditionsAreWrittenTogether(t *testing.T) {
	api, instance := withInstance(t)
	w := Writer{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(noon), Namespace: "wmco"}
	begin := func(passed []string) *scope.Scope {
		s := scope.New(instance.DeepCopy(), &scope.Session{})
		for _, condition := range passed {
			s.Pass(condition, "It is.")
		}
		return s
	}
	finish := func(s *scope.Scope) {
		t.Helper()
		if err := w.Finish(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(instance), instance); err != nil {
			t.Fatal(err)
		}
	}
	finish(begin(scope.Conditions[:]))

	ours := begin(scope.Conditions[:])
	w.Begin(ours, "Inspect")
	if err := w.Patch(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	theirs := begin(nil)
	theirs.Obstacle = &obstacle.Obstacle{Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonWaiting, Message: "It is at work.",
		Next: "It is left to finish."}
	finish(theirs)
	if got := instance.Status; got.Summary != v1alpha1.ReasonWaiting || meta.IsStatusConditionTrue(got.Conditions, v1alpha1.ConditionReady) {
		t.Fatalf("summary %q, conditions %+v", got.Summary, got.Conditions)
	}
	finish(ours)
	if got := instance.Status; got.Summary != v1alpha1.ReasonReady || got.NextAction != "" || !got.Readiness.Ready ||
		!meta.IsStatusConditionTrue(got.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("summary %q, next action %q, readiness %+v, conditions %+v", got.Summary, got.NextAction, got.Readiness, got.Conditions)
	}
}

func TestTheProgressOfAllHostsTogetherIsWrittenSoOftenAndNoMoreOften(t *testing.T) {
	pace, clock := &Pace{}, clocktesting.NewFakePassiveClock(noon)
	written := func() (count int) {
		for range 200 {
			if pace.allows(clock) {
				count++
			}
		}
		return count
	}
	if first, next := written(), written(); first != progressAtOnce || next != 0 {
		t.Errorf("of 200 hosts, the progress of %d is written at once, and of %d at the same moment again", first, next)
	}
	clock.SetTime(noon.Add(time.Second))
	if later := written(); later != progressPerSecond {
		t.Errorf("a second later that of %d is written", later)
	}
}

// Of thirty hosts that wait for minutes, five had used up what may be written, and the others seemed to restart all the while.
func TestNoHostsStatusIsOlderThanAMinuteWhileOthersAreWritten(t *testing.T) {
	api, instance := withInstance(t)
	clock := clocktesting.NewFakePassiveClock(noon)
	w := Writer{Client: api, Live: api, Clock: clock, Pace: &Pace{}}
	s := scope.New(instance, &scope.Session{LastWrite: noon})
	for second := range 60 {
		clock.SetTime(noon.Add(time.Duration(second) * time.Second))
		for w.Pace.allows(clock) { // others
		}
		if w.Progress(t.Context(), s, "AwaitNetwork", 1, 3, ""); s.Session.LastWrite != noon {
			t.Fatalf("it was written after %d s, as if no others were there", second)
		}
	}
	clock.SetTime(noon.Add(longestSilence))
	for w.Pace.allows(clock) {
	}
	w.Progress(t.Context(), s, "AwaitNetwork", 1, 3, "")
	var stored v1alpha1.WindowsInstance
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(instance), &stored); err != nil {
		t.Fatal(err)
	}
	if stored.Status.Step == nil || stored.Status.Step.Name != "AwaitNetwork" {
		t.Errorf("after a minute the step is %+v", stored.Status.Step)
	}
}
