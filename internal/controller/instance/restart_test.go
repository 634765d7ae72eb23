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
func TestAwaitRestart_OnlyFactsBeforeHostIsDown(t *testing.T) {
	x := newTrial(t, listedInstance())
	x.facts.Platform = "None"
	h := x.withAgent(func(o *fake.Options) { o.Clock, o.ShutdownDelay = x.clock, bootIDTimeout+time.Minute })
	for attempts := 0; !slices.Contains(h.agentCommands(), "apply"); attempts++ {
		if attempts > 10 {
			t.Fatalf("the host was not configured: %q", h.agentCommands())
		}
		x.reconcile()
	}
	first := len(h.agentCommands())
	for passed := time.Duration(0); passed < bootIDTimeout-10*time.Second; passed += 10 * time.Second {
		x.clock.Step(10 * time.Second)
		instance, after := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionPrepared, metav1.ConditionFalse, v1alpha1.ReasonRebooting)
		if after > maxRebootPollInterval {
			t.Errorf("the next look is in %s", after)
		}
	}
	commands := h.agentCommands()[first:]
	if len(commands) < 3 || slices.ContainsFunc(commands, func(verb string) bool { return verb != "facts" }) {
		t.Errorf("before the host went down it was told to %q", commands)
	}
	if events := x.popEvents(); slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, "Warning") }) {
		t.Errorf("the events are %q", events)
	}
	t.Run("and configured again when it has not gone down in time", func(t *testing.T) {
		x.clock.Step(10 * time.Second)
		x.reconcile()
		if last := h.agentCommands()[len(h.agentCommands())-1]; last != "apply" {
			t.Errorf("the host was told to %q at last", last)
		}
	})
}
