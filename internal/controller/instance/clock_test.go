package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

const year = 365 * 24 * time.Hour

// A host is checked two minutes after the operator observed its node NotReady, regardless of the kubelet's
// timestamps.
func TestClock_SkewDoesNotDelayRepair(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"a right clock": 0, "two hours ahead": 2 * time.Hour,
		"two hours behind": -2 * time.Hour, "in the year 2096": 70 * year} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			x.asNode(machineInstance(), x.key.Hash())
			x.breakNodeSince(noon, noon.Add(ahead))
			x.changeStatus(func(s *v1alpha1.WindowsInstanceStatus) {
				s.Readiness = &v1alpha1.Readiness{Ready: true, Since: metav1.NewTime(noon.Add(-time.Hour))}
			})
			instance, after := x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady)
			if x.countDials() != 0 || after != 2*time.Minute {
				t.Errorf("%d connections at once, the next look in %s", x.countDials(), after)
			}
			x.clock.Step(time.Minute)
			if x.reconcile(); x.countDials() != 0 {
				t.Errorf("%d connections after a minute", x.countDials())
			}
			x.clock.Step(time.Minute)
			if x.reconcile(); x.countDials() == 0 {
				t.Error("the host is not looked at after two minutes")
			}
		})
	}
}

func TestClock_SkewedHostNotJoinedBeforeCorrection(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"a year ahead": year, "local time": 2 * time.Hour,
		"ten minutes behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			x, h, _ := hostToJoin(t, "None", func(o *fake.Options) { o.ClockOffset = ahead })
			instance := x.reconcileUntil("a reason", hasSummary(v1alpha1.ReasonClockSkew))
			skew := expectCondition(t, instance, v1alpha1.ConditionSupported, metav1.ConditionFalse, v1alpha1.ReasonClockSkew)
			for _, want := range []string{x.clock.Now().Add(ahead).UTC().Format(time.DateTime), x.clock.Now().UTC().Format(time.DateTime)} {
				if !strings.Contains(skew.Message, want) {
					t.Errorf("%s is not in the message: %s", want, skew.Message)
				}
			}
			if !strings.Contains(instance.Status.NextAction, "Correct the clock") {
				t.Errorf("what to do is not in %q", instance.Status.NextAction)
			}
			if verbs := slices.Compact(h.agentCommands()); !slices.Equal(verbs, []string{"facts"}) || x.countRequests() > 0 {
				t.Errorf("the host was told to %q, %d certificates were asked for", verbs, x.countRequests())
			}
			if _, exists := h.machine.Service(nodespec.ServiceAgent); exists || instance.Status.NodeRef != nil {
				t.Errorf("the host was changed, its name %+v", instance.Status.NodeRef)
			}
			if events := strings.Join(x.popEvents(), "\n"); !strings.Contains(events, v1alpha1.ReasonClockSkew) {
				t.Errorf("there is no event: %s", events)
			}
			h.machine.SetClockOffset(0)
			x.clock.Step(10 * time.Minute)
			x.joinNode()
		})
	}
}

func TestClock_SmallSkewIsAdvice(t *testing.T) {
	x, _, _ := hostToJoin(t, "None", func(o *fake.Options) { o.ClockOffset = 3 * time.Minute })
	x.ahead = 3 * time.Minute
	instance := x.joinNode()
	ready := expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if !strings.Contains(ready.Message, " But the host's clock shows ") || !strings.Contains(ready.Message, "3m ahead") {
		t.Errorf("the message is %q", ready.Message)
	}
	if told := strings.Join(x.popEvents(), "\n"); !strings.Contains(told, "ClockSkew The node accepts pods, but the host's clock shows ") {
		t.Errorf("there is no event: %s", told)
	}
}

// The facts that the operator reads when it checks the clock again contain no certificate requests.
func TestClock_CertificateIssuedAfterCorrection(t *testing.T) {
	x, h, _ := nodeInService(t, "None")
	kubelet := x.identitiesOf()[0]
	x.clock.Step(2 * month)
	x.runHostClock()
	x.reportReady(corev1.ConditionUnknown)
	h.machine.SetClockOffset(year)
	x.reconcileUntil("a reason", hasSummary(v1alpha1.ReasonClockSkew))
	x.popEvents()
	h.machine.SetClockOffset(0)
	instance := x.reconcileUntil("a new certificate", func(i *v1alpha1.WindowsInstance) bool {
		got := h.currentCertificate(kubelet)
		return i.Status.Summary == v1alpha1.ReasonCertificateRequestRefused || got != nil && x.clock.Now().Before(got.NotAfter)
	})
	if instance.Status.Summary == v1alpha1.ReasonCertificateRequestRefused {
		t.Errorf("%v: %s", instance.Status.Conditions, instance.Status.NextAction)
	}
	x.reportReady(corev1.ConditionTrue)
	x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
	for _, event := range x.popEvents() {
		if strings.Contains(event, v1alpha1.ReasonCertificateRequestRefused) || strings.Contains(event, v1alpha1.ReasonClockSkew) ||
			strings.Contains(event, "no longer on the host") {
			t.Errorf("an event after the clock was set: %s", event)
		}
	}
}

func TestClock_AdviceEndsWithSkew(t *testing.T) {
	const remark = "But the host's clock shows"
	ready := func(t *testing.T, x *trial) string {
		t.Helper()
		return expectCondition(t, x.getInstance(), v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded).Message
	}
	behind := func(o *fake.Options) { o.ClockOffset = -3 * time.Minute }
	t.Run("if the clock is set before the node is Ready", func(t *testing.T) {
		x, h, _ := hostToJoin(t, "None", behind)
		x.registerNode()
		h.machine.SetClockOffset(0)
		x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
		if message, events := ready(t, x), strings.Join(x.popEvents(), "\n"); strings.Contains(message, remark) || strings.Contains(events, "ClockSkew") {
			t.Errorf("the message is %q, the events are %s", message, events)
		}
	})
	t.Run("if the clock of a Ready node is set", func(t *testing.T) {
		x, h, gate := hostToJoin(t, "None", behind)
		x.ahead = -3 * time.Minute
		x.joinNode()
		start := len(h.agentCommands())
		checks := func() (count int) {
			for _, verb := range h.agentCommands()[start:] {
				if verb == "verify" {
					count++
				}
			}
			return count
		}
		_, after := x.reconcile()
		if message := ready(t, x); !strings.Contains(message, remark) || len(h.agentCommands()) != start || after <= 0 || after > 10*time.Minute {
			t.Fatalf("%d checks, the next check is in %s, the message is %q", checks(), after, message)
		}
		x.clock.Step(10 * time.Minute)
		if x.reconcile(); !strings.Contains(ready(t, x), remark) || checks() != 1 {
			t.Errorf("%d checks, the message is %q", checks(), ready(t, x))
		}
		h.machine.SetClockOffset(0)
		x.clock.Step(20 * time.Minute)
		if x.reconcile(); strings.Contains(ready(t, x), remark) || checks() != 2 || len(gate.held) > 0 {
			t.Errorf("%d checks, the message is %q", checks(), ready(t, x))
		}
		x.clock.Step(24 * time.Hour)
		if _, after := x.reconcile(); checks() != 2 || after > 0 && after < 24*time.Hour {
			t.Errorf("%d checks, the next check is in %s", checks(), after)
		}
	})
}

// A wrong clock does not block a node in service. If the agent rejects a certificate, the clock is the reason.
func TestClock_SkewExplainsRejectedCertificate(t *testing.T) {
	x := newTrial(t)
	x.asNode(machineInstance(), x.key.Hash())
	for name, c := range map[string]struct {
		ahead  time.Duration
		reason string
	}{
		"a clock that is off":   {-time.Hour, v1alpha1.ReasonClockSkew},
		"a clock that is right": {0, v1alpha1.ReasonCertificateRequestRefused},
	} {
		t.Run(name, func(t *testing.T) {
			s := x.newScope(x.getInstance())
			s.Session.Clock = support.ClockReading{Host: noon.Add(c.ahead), RequestedAt: noon, RespondedAt: noon}
			if o := x.newDependencies().join.signer.HandleRejection(t.Context(), s, ""); o.Reason != c.reason {
				t.Errorf("%+v", o)
			}
		})
	}
}
