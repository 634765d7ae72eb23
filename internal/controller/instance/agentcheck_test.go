package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// reportsConfiguration sets the condition WindowsConfiguration of the Node.
func (x *trial) reportsConfiguration(status corev1.ConditionStatus, reason, message string) {
	x.t.Helper()
	node := x.getNode()
	node.Status.Conditions = append(slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == nodespec.ConditionConfiguration
	}), corev1.NodeCondition{Type: nodespec.ConditionConfiguration, Status: status, Reason: reason, Message: message})
	if err := x.Client.Status().Update(x.t.Context(), node); err != nil {
		x.t.Fatal(err)
	}
}

//
func TestAgentCheck_RestoresAgentOfReadyNode(t *testing.T) {
	const silent = "The agent on the host has not written this condition for 15 minutes."
	for name, c := range map[string]struct {
		change func(*testing.T, host.Host)
		status corev1.ConditionStatus
		reason string
		text   string
	}{
		"when its service was stopped": {func(t *testing.T, w host.Host) {
			if err := w.Services.Stop(t.Context(), nodespec.ServiceAgent); err != nil {
				t.Fatal(err)
			}
		}, corev1.ConditionUnknown, nodespec.ConfigurationAgentSilent, silent},
		"when its service was deleted": {func(t *testing.T, w host.Host) {
			if err := w.Services.Stop(t.Context(), nodespec.ServiceAgent); err != nil {
				t.Fatal(err)
			}
			if err := w.Services.Delete(t.Context(), nodespec.ServiceAgent); err != nil {
				t.Fatal(err)
			}
		}, corev1.ConditionUnknown, nodespec.ConfigurationAgentSilent, silent},
		"when it reports that its service was altered": {func(t *testing.T, w host.Host) {
			found, err := w.Services.Query(t.Context(), nodespec.ServiceAgent)
			if err != nil {
				t.Fatal(err)
			}
			altered := found[0].ServiceConfig
			altered.CommandLine += " --altered"
			if err := w.Services.Configure(t.Context(), altered); err != nil {
				t.Fatal(err)
			}
		}, corev1.ConditionFalse, nodespec.ConfigurationNeedsOperator, "StopService " + nodespec.ServiceAgent + ", because it was altered"},
	} {
		t.Run(name, func(t *testing.T) {
			x, h, gate := nodeInService(t, "None")
			windows := h.machine.Host()
			service := func() host.Service {
				found, err := windows.Services.Query(t.Context(), nodespec.ServiceAgent)
				if err != nil || len(found) == 0 {
					return host.Service{}
				}
				return found[0]
			}
			x.reportsConfiguration(corev1.ConditionTrue, nodespec.ConfigurationInSync, "")
			before, logins := service().CommandLine, h.countAccepted()
			x.Hosts.Close(machine)
			c.change(t, windows)
			x.reconcile()
			if n := h.countAccepted() - logins; n != 0 {
				t.Fatalf("%d connections to a host whose agent maintains it", n)
			}
			x.reportsConfiguration(c.status, c.reason, c.text)
			x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
			if now := service(); now.State != host.ServiceRunning || now.CommandLine != before {
				t.Errorf("the service is %+v", now)
			}
			if n := h.countAccepted() - logins; n != 1 || len(gate.requests) > 0 || x.getNode().Spec.Unschedulable {
				t.Errorf("%d connections; the gate was asked %d times; unschedulable is %t", n, len(gate.requests), x.getNode().Spec.Unschedulable)
			}
			expectCondition(t, x.getInstance(), v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		})
	}
}

// countAccepted counts the successful SSH logins of the operator. The trial also routes the probe of the kubelet's
// port to the SSH server.
func (h *agentHost) countAccepted() int {
	return len(h.machine.Journal().Entries(func(e fake.Entry) bool {
		return e.Kind == winhost.KindLogin && strings.HasPrefix(e.Detail, "accepted")
	}))
}

// The host controls the condition, including its absence.
func TestAgentCheck_SilentAgentCausesFewConnections(t *testing.T) {
	for name, flips := range map[string]bool{"silent all the time": false, "silent again and again": true} {
		t.Run(name, func(t *testing.T) {
			x, h, _ := nodeInService(t, "None")
			logins := h.countAccepted()
			x.Hosts.Close(machine)
			start := x.clock.Now()
			for x.clock.Since(start) < 24*time.Hour {
				x.reportsConfiguration(corev1.ConditionUnknown, nodespec.ConfigurationAgentSilent, "")
				_, after := x.reconcile()
				if after == 0 || after > maxAgentCheckBackoff {
					t.Fatalf("the next look is after %s", after)
				}
				x.Hosts.Close(machine)
				if flips {
					after = 20 * time.Minute
					x.reportsConfiguration(corev1.ConditionTrue, nodespec.ConfigurationInSync, "")
					x.reconcile()
				}
				x.clock.Step(after)
			}
			if n := h.countAccepted() - logins; n < 10 || n > 16 {
				t.Errorf("%d connections in a day", n)
			}
		})
	}
}

// A failed check is not repeated at once, and its failure is reported until the next check.
func TestAgentCheck_FailureReportedUntilNextCheck(t *testing.T) {
	x, h, _ := nodeInService(t, "None")
	x.Hosts.Close(machine)
	h.off = true
	x.reportsConfiguration(corev1.ConditionUnknown, nodespec.ConfigurationAgentSilent, "")
	x.popEvents()
	start, events := x.clock.Now(), 0
	for x.clock.Since(start) < 12*time.Hour {
		instance, after := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, string(remote.ReasonUnreachable))
		for _, event := range x.popEvents() {
			if strings.Contains(event, string(remote.ReasonUnreachable)) {
				events++
			}
		}
		x.clock.Step(after)
	}
	if events != 1 {
		t.Errorf("%d events", events)
	}
	t.Run("or until the agent maintains the host again", func(t *testing.T) {
		x.reportsConfiguration(corev1.ConditionTrue, nodespec.ConfigurationInSync, "")
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})
	t.Run("or until the host answers", func(t *testing.T) {
		h.off = false
		x.clock.Step(maxAgentCheckBackoff)
		x.reportsConfiguration(corev1.ConditionUnknown, nodespec.ConfigurationAgentSilent, "")
		x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})
}
