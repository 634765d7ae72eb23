package instance

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// restartKubelet changes the kubelet of a node in service. The Node is still Ready by the report of the former
// kubelet.
func restartKubelet(t *testing.T) (*trial, *agentHost, *v1alpha1.WindowsInstance) {
	t.Helper()
	x, h, _ := nodeInService(t, "None")
	process := h.servicePID(nodespec.ServiceKubelet)
	x.clock.Step(time.Minute)
	x.facts.Kubelet.ClusterDNS = []string{"172.30.0.11"}
	instance := x.reconcileUntil("the report", hasSummary(v1alpha1.ReasonNodeNotReady))
	if now := h.servicePID(nodespec.ServiceKubelet); now == 0 || now == process {
		t.Fatalf("the kubelet's process was %d and is %d", process, now)
	}
	return x, h, instance
}

// A node in service keeps the Ready condition of its former kubelet until the next kubelet reports, however long
// that takes.
func TestVerify_ReadyOfFormerKubeletNotTrusted(t *testing.T) {
	t.Run("the node is proven once its kubelet has reported", func(t *testing.T) {
		x, _, instance := restartKubelet(t)
		ready := expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady)
		if !nodeidentity.IsReady(x.getNode()) || !strings.Contains(ready.Message, "It has not reported since its start at ") {
			t.Errorf("the message is %q, and the Node Ready: %t", ready.Message, nodeidentity.IsReady(x.getNode()))
		}
		if _, after := x.reconcile(); after > readyPollInterval {
			t.Errorf("it is looked at again after %s, and nothing wakes the operator before", after)
		}
		if status := x.getInstance().Status; status.SpecDigest != "" || status.FailedChange != nil {
			t.Errorf("digest %q, failed change %v", status.SpecDigest, status.FailedChange)
		}
		x.reportReady(corev1.ConditionTrue)
		instance = x.reconcileUntil("a Ready node", hasSummary(v1alpha1.ReasonReady))
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	})
	t.Run("a kubelet that never reports is a change that has failed, and so is a way back without a report",
		func(t *testing.T) {
			x, _, _ := restartKubelet(t)
			x.clock.Step(readyTimeout - readyPollInterval)
			instance, after := x.reconcile()
			if instance.Status.FailedChange != nil || after > readyPollInterval {
				t.Errorf("failed too early: %v; the next look is after %s", instance.Status.FailedChange, after)
			}
			x.reconcileUntil("the failure", func(i *v1alpha1.WindowsInstance) bool { return i.Status.FailedChange != nil })
			for range 5 {
				x.clock.Step(readyPollInterval)
				if instance, _ = x.reconcile(); instance.Status.FailedChange.RolledBack {
					t.Fatal("the way back was believed without a report")
				}
			}
			x.reportReady(corev1.ConditionTrue)
			x.reconcileUntil("the way back", func(i *v1alpha1.WindowsInstance) bool {
				return i.Status.FailedChange != nil && i.Status.FailedChange.RolledBack
			})
		})
}
