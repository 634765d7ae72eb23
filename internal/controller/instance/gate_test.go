package instance

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/policy"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// trialGate is a gate that the test opens and closes.
type trialGate struct {
	refusal  disruptionpolicy.Decision // the decision on a request; allowed by default
	closed   bool
	requests []disruptionpolicy.Request
	held     []string
	granted  []string // new slots
	released []string
	// releasing is called before a disruption ends.
	releasing func()
	settings  disruptionpolicy.Settings
}

func openGate() *trialGate {
	return &trialGate{settings: disruptionpolicy.Settings{FailureDeadline: 30 * time.Minute,
		DrainTimeout: 15 * time.Minute}}
}

func (g *trialGate) Acquire(_ context.Context, request disruptionpolicy.Request) (disruptionpolicy.Decision, error) {
	g.requests = append(g.requests, request)
	if g.closed {
		return g.refusal, nil
	}
	if !slices.Contains(g.held, request.Instance) {
		g.granted = append(g.granted, request.Instance)
	}
	g.held = append(g.held, request.Instance)
	return disruptionpolicy.Decision{Decision: policy.Decision{Allowed: true}}, nil
}

func (g *trialGate) Release(_ context.Context, instance string) error {
	if slices.Contains(g.held, instance) {
		if g.releasing != nil {
			g.releasing()
		}
		g.released = append(g.released, instance)
		g.held = slices.DeleteFunc(g.held, func(name string) bool { return name == instance })
	}
	return nil
}

func (g *trialGate) Holds(_ context.Context, instance string) (bool, error) {
	return slices.Contains(g.held, instance), nil
}

func (g *trialGate) Settings(context.Context) (disruptionpolicy.Settings, error) {
	return g.settings, nil
}

// refuseAll refuses all requests for the reason.
func (g *trialGate) refuseAll(reason string) {
	g.closed, g.refusal = true, disruptionpolicy.Decision{Decision: policy.Decision{Reason: reason, Message: "Not now."},
		After: time.Minute}
}

//
func TestSlot_UpToDateWrittenBeforeRelease(t *testing.T) {
	x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, true)
	s := x.newScope(x.getInstance())
	s.Cluster, s.Key = *x.facts, x.key
	gate := openGate()
	gate.held = []string{machine}
	released := false
	gate.releasing = func() {
		released = true
		written := x.getInstance()
		expectCondition(t, written, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		if written.Status.Version != "2.0.0" || written.Status.SpecDigest == "" {
			t.Errorf("its status says version %s, digest %q", written.Status.Version, written.Status.SpecDigest)
		}
	}
	x.Gate = gate
	s.Host.Verified = &agentapi.Result{}
	d := x.newDependencies()
	if o := d.activate.reconcile(t.Context(), s); o != nil || released {
		t.Fatalf("released: %t; %+v", released, o)
	}
	quiet, err := d.status.Write(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.finishReconcile(t.Context(), d, s, ctrl.Result{}, quiet); err != nil || !released {
		t.Errorf("released: %t; %v", released, err)
	}
}

// Of the waiting nodes, only some are enqueued when a slot is released, and the slot may suit none of them.
func TestSlot_RetryDelayDependsOnReason(t *testing.T) {
	const deadline = 25 * time.Minute
	for name, c := range map[string]struct {
		reason      string
		after, want time.Duration
	}{
		"that waits for others which must be back by a time, within a minute": {v1alpha1.ReasonMaxUnavailableReached, deadline, time.Minute},
		"that waits for others which must be back by then, in time":           {v1alpha1.ReasonMaxUnavailableReached, time.Second, time.Second},
		"that waits for others without a time, within a minute":               {v1alpha1.ReasonLastAvailableMachine, 0, time.Minute},
		"that waits for the first of its pool, within a minute":               {v1alpha1.ReasonCanarySoaking, deadline, time.Minute},
		"that waits for a window, when it opens":                              {v1alpha1.ReasonOutsideMaintenanceWindow, deadline, deadline},
		"that waits for an administrator, seldom":                             {v1alpha1.ReasonDisruptionsPaused, 0, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			x, gate := newTrial(t), openGate()
			x.Gate = gate
			x.asNode(machineInstance(), x.key.Hash())
			x.changeNode(requestReboot)
			gate.refuseAll(c.reason)
			gate.refusal.After = c.after
			if instance, after := x.reconcile(); instance.Status.Summary != c.reason || after != c.want {
				t.Errorf("it is %s, and asks again after %s, want %s", instance.Status.Summary, after, c.want)
			}
		})
	}
}
