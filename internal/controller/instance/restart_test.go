package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// restarting is an instance whose host was to restart at noon, in that boot.
func restarting(boot string) *v1alpha1.WindowsInstance {
	instance := listed()
	instance.Status.Host = &v1alpha1.HostStatus{Name: machine, BootID: boot}
	instance.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionPrepared, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRebooting, LastTransitionTime: metav1.NewTime(noon),
	}}
	return instance
}

//
func TestARestartIsWaitedForUntilTheHostHasAnotherBootID(t *testing.T) {
	const before, after = "boot-1", "boot-2"
	for name, c := range map[string]struct {
		told   string        // the boot id that the host tells
		passed time.Duration // since noon
		waits  bool
		event  bool // that it is back
	}{
		"a host that still answers from before is not gone on with":     {told: before, waits: true},
		"nor is one just before it counts as not restarted":             {told: before, passed: restartLimit - time.Second, waits: true},
		"a host that has kept its boot id for too long is told again":   {told: before, passed: restartLimit},
		"a host with another boot id is back":                           {told: after, event: true},
		"a host with another boot id is back, however long it was away": {told: after, passed: rebootLimit + time.Hour, event: true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, restarting(before))
			x.clock.Step(c.passed)
			s := x.newScope(restarting(before))
			s.session.facts = &plan.Facts{System: host.SystemInfo{BootID: c.told}}
			o := s.awaitRestart(s.session.facts)
			if waits := o != nil; waits != c.waits {
				t.Fatalf("it waits: %t", waits)
			}
			reason := meta.FindStatusCondition(s.instance.Status.Conditions, v1alpha1.ConditionPrepared).Reason
			if c.waits {
				if !o.waiting || o.reason != v1alpha1.ReasonRebooting || o.after <= 0 || o.after > lastRebootPoll || reason != v1alpha1.ReasonRebooting {
					t.Errorf("the wait is %+v, Prepared is for %s", o, reason)
				}
				if s.session.facts != nil {
					t.Error("what the host told from before is believed at the next look")
				}
			} else if reason != v1alpha1.ReasonNotYet {
				t.Errorf("Prepared is still for %s", reason)
			}
			told := x.told()
			if event := slices.ContainsFunc(told, func(e string) bool { return strings.Contains(e, "HostRestarted") }); event != c.event || len(told) > 1 {
				t.Errorf("the events are %q", told)
			}
		})
	}
}

//
func TestAHostThatAnswersBeforeItGoesDownIsAskedForFactsOnly(t *testing.T) {
	x := newTrial(t, listed())
	x.facts.Platform = "None"
	h := x.withAgent(func(o *fake.Options) { o.Clock, o.ShutdownDelay = x.clock, restartLimit+time.Minute })
	for attempts := 0; !slices.Contains(h.execs(), "apply"); attempts++ {
		if attempts > 10 {
			t.Fatalf("the host was not configured: %q", h.execs())
		}
		x.reconcile()
	}
	first := len(h.execs())
	for passed := time.Duration(0); passed < restartLimit-10*time.Second; passed += 10 * time.Second {
		x.clock.Step(10 * time.Second)
		instance, after := x.reconcile()
		expect(t, instance, v1alpha1.ConditionPrepared, metav1.ConditionFalse, v1alpha1.ReasonRebooting)
		if after > lastRebootPoll {
			t.Errorf("the next look is in %s", after)
		}
	}
	looks := h.execs()[first:]
	if len(looks) < 3 || slices.ContainsFunc(looks, func(verb string) bool { return verb != "facts" }) {
		t.Errorf("before the host went down it was told to %q", looks)
	}
	if told := x.told(); slices.ContainsFunc(told, func(e string) bool { return strings.HasPrefix(e, "Warning") }) {
		t.Errorf("the events are %q", told)
	}
	t.Run("and configured again when it has not gone down in time", func(t *testing.T) {
		x.clock.Step(10 * time.Second)
		x.reconcile()
		if last := h.execs()[len(h.execs())-1]; last != "apply" {
			t.Errorf("the host was told to %q at last", last)
		}
	})
}
