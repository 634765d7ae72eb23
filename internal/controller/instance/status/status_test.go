package status

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func statusAfter(status v1alpha1.WindowsInstanceStatus, passed []string,
	o *result.Result) v1alpha1.WindowsInstanceStatus {
	found := map[string]metav1.Condition{}
	for _, condition := range passed {
		found[condition] = metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded}
	}
	setConditions(&status, found, o, 1, noon)
	return status
}

func TestSummarize_SetsEveryCondition(t *testing.T) {
	unreachable := &result.Result{Condition: v1alpha1.ConditionReachable, Reason: "Unreachable",
		Message: "connection refused", NextAction: "Start sshd."}

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
			&result.Result{Outcome: result.Done})
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

func TestIsProgressDue_EveryFiveSeconds(t *testing.T) {
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
			if got := isProgressDue(c.last, noon); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A host may wait for a slot, drain or collect facts for minutes, without a second report.
func TestProgress_OperatorStepWrittenAtOnce(t *testing.T) {
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
	w := Writer{Client: api, Clock: clocktesting.NewFakePassiveClock(noon)}
	s := scope.New(instance, &scope.Session{}, &hostjobs.Host{}, w.Clock)
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
	progress := func(step hostjobs.Step) {
		t.Helper()
		if err := w.Progress(t.Context(), s, &hostjobs.Progress{Step: step, Show: &result.Result{}}); err != nil {
			t.Fatal(err)
		}
	}
	progress(hostjobs.Step{Name: "StartService kubelet", Index: 1, Total: 2})
	expect("StartService kubelet", 1)
	progress(hostjobs.Step{Name: "StartService kube-proxy", Index: 2, Total: 2})
	expect("StartService kubelet", 1)
	progress(hostjobs.Step{Name: "DrainNode", Detail: "evicting pods", Waits: true})
	expect("DrainNode", 2)
	progress(hostjobs.Step{Name: "DrainNode", Detail: "evicting pods", Waits: true})
	expect("DrainNode", 2)
}

// withInstance returns a fake API server with an instance.
func withInstance(t *testing.T) (client.WithWatch, *v1alpha1.WindowsInstance) {
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

// An operator that is no longer the leader must not write a decision from before another operator's write.
func TestWrite_StaleStatusNotWritten(t *testing.T) {
	api, instance := withInstance(t)
	w := Writer{Client: api, Clock: clocktesting.NewFakePassiveClock(noon), Namespace: "wmco"}
	begin := func(summary string) *scope.Scope {
		s := scope.New(instance.DeepCopy(), &scope.Session{}, &hostjobs.Host{}, w.Clock)
		s.Result = &result.Result{Condition: v1alpha1.ConditionReady, Reason: summary, Message: "It is.", NextAction: "It is left to finish."}
		return s
	}
	late, early := begin("Ours"), begin("Theirs")
	if _, err := w.Write(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(t.Context(), late); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v", err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(instance), instance); err != nil || instance.Status.Summary != "Theirs" {
		t.Errorf("the summary is %q: %v", instance.Status.Summary, err)
	}
}

// The API server stores whole seconds.
func TestWrite_UnchangedStatusNotWritten(t *testing.T) {
	api, instance := withInstance(t)
	writes := 0
	counting := interceptor.NewClient(api, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
		o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
		writes++
		return c.SubResource(sub).Patch(ctx, o, p, options...)
	}})
	w := Writer{Client: counting, Clock: clocktesting.NewFakePassiveClock(noon.Add(time.Second / 3)), Namespace: "wmco"}
	s := scope.New(instance, &scope.Session{}, &hostjobs.Host{}, w.Clock)
	for _, condition := range scope.Conditions {
		s.MarkTrue(condition, "It is.")
	}
	s.Instance.Status.ObservedGeneration = s.Instance.Generation
	if _, err := w.Write(t.Context(), s); err != nil || writes != 1 {
		t.Fatalf("%d writes, error %v", writes, err)
	}
	if _, err := w.Write(t.Context(), s); err != nil || writes != 1 {
		t.Errorf("%d writes, error %v", writes, err)
	}
}

func TestProgressLimiter_LimitsWritesOfAllHosts(t *testing.T) {
	pace, clock := &ProgressLimiter{}, clocktesting.NewFakePassiveClock(noon)
	written := func() (count int) {
		for range 200 {
			if pace.tryAccept(clock) {
				count++
			}
		}
		return count
	}
	if first, next := written(), written(); first != maxProgressBurst || next != 0 {
		t.Errorf("of 200 hosts, the progress of %d is written at once, and of %d at the same moment again", first, next)
	}
	clock.SetTime(noon.Add(time.Second))
	if later := written(); later != progressPerSecond {
		t.Errorf("a second later that of %d is written", later)
	}
}

// A regression: of thirty hosts that waited for minutes, five exhausted the write limit, and the others seemed to
// be restarting.
func TestProgress_WrittenAtMaxAgeDespiteLimit(t *testing.T) {
	api, instance := withInstance(t)
	clock := clocktesting.NewFakePassiveClock(noon)
	w := Writer{Client: api, Clock: clock, ProgressLimiter: &ProgressLimiter{}}
	s := scope.New(instance, &scope.Session{LastWrite: noon}, &hostjobs.Host{}, w.Clock)
	awaitsNetwork := &hostjobs.Progress{Step: hostjobs.Step{Name: "AwaitNetwork", Index: 1, Total: 3}, Show: &result.Result{}}
	for second := range 60 {
		clock.SetTime(noon.Add(time.Duration(second) * time.Second))
		for w.ProgressLimiter.tryAccept(clock) { // other hosts
		}
		if err := w.Progress(t.Context(), s, awaitsNetwork); err != nil || s.Session.LastWrite != noon {
			t.Fatalf("it was written after %d s, as if no others were there", second)
		}
	}
	clock.SetTime(noon.Add(maxProgressAge))
	for w.ProgressLimiter.tryAccept(clock) {
	}
	if err := w.Progress(t.Context(), s, awaitsNetwork); err != nil {
		t.Fatal(err)
	}
	var stored v1alpha1.WindowsInstance
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(instance), &stored); err != nil {
		t.Fatal(err)
	}
	if stored.Status.Step == nil || stored.Status.Step.Name != "AwaitNetwork" {
		t.Errorf("after a minute the step is %+v", stored.Status.Step)
	}
}
