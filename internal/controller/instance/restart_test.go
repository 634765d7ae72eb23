package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

//
func TestAHostThatAnswersBeforeItGoesDownIsAskedForFactsOnly(t *testing.T) {
	x := newTrial(t, listed())
	x.facts.Platform = "None"
	h := x.withAgent(func(o *fake.Options) { o.Clock, o.ShutdownDelay = x.clock, sameBootLimit+time.Minute })
	for attempts := 0; !slices.Contains(h.execs(), "apply"); attempts++ {
		if attempts > 10 {
			t.Fatalf("the host was not configured: %q", h.execs())
		}
		x.reconcile()
	}
	first := len(h.execs())
	for passed := time.Duration(0); passed < sameBootLimit-10*time.Second; passed += 10 * time.Second {
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
