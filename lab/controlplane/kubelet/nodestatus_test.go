package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/nodestatus"
)

// The agent writes the condition WindowsConfiguration to the same Node status as the kubelet's own conditions.
// Each writes from a copy that the other may have changed since, and neither may remove the other's conditions.
func TestNodeStatus_KubeletAndAgentPreserveConditions(t *testing.T) {
	const name, condition = "win-a", "WindowsConfiguration"
	ctx := t.Context()
	capacity := corev1.ResourceList{}
	for _, kind := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		capacity[kind] = resource.MustParse("4")
	}
	clients := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: capacity}})
	api := clients.CoreV1().Nodes()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	get := func() *corev1.Node {
		node, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	// kubelet updates the status from the copy of the Node in its cache, as tryUpdateNodeStatus does.
	kubelet := func(cached *corev1.Node, pressure bool) {
		t.Helper()
		clock := func() time.Time { return now }
		none, quiet := func() error { return nil }, func(klog.Logger, string, string) {}
		node := cached.DeepCopy()
		for _, set := range []nodestatus.Setter{
			nodestatus.MemoryPressureCondition(clock, func() bool { return pressure }, quiet),
			nodestatus.DiskPressureCondition(clock, func() bool { return false }, quiet),
			nodestatus.PIDPressureCondition(clock, func() bool { return false }, quiet),
			nodestatus.ReadyCondition(clock, none, none, none, func() cm.Status { return cm.Status{} }, none, quiet, false),
		} {
			if err := set(ctx, node); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := nodeutil.PatchNodeStatus(clients.CoreV1(), types.NodeName(name), cached, node); err != nil {
			t.Fatal(err)
		}
	}
	agent := func(status string) {
		t.Helper()
		patch := `{"status":{"conditions":[{"type":"` + condition + `","status":"` + status + `","reason":"Any","message":"m",` +
			`"lastHeartbeatTime":"2026-01-01T12:00:00Z","lastTransitionTime":"2026-01-01T12:00:00Z"}]}}`
		if _, err := api.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	says := func(want map[corev1.NodeConditionType]corev1.ConditionStatus) {
		t.Helper()
		got := map[corev1.NodeConditionType]corev1.ConditionStatus{}
		for _, c := range get().Status.Conditions {
			got[c.Type] = c.Status
		}
		for kind, status := range want {
			if got[kind] != status {
				t.Errorf("condition %s is %q, want %q; all are %v", kind, got[kind], status, got)
			}
		}
	}

	beforeAgent := get()
	agent("True")
	kubelet(beforeAgent, false) // its cache lacks the agent's condition
	says(map[corev1.NodeConditionType]corev1.ConditionStatus{condition: "True", corev1.NodeReady: "True", corev1.NodeMemoryPressure: "False"})

	stale := get()
	agent("False")
	now = now.Add(5 * time.Minute)
	kubelet(stale, true) // its cache has the agent's previous condition
	says(map[corev1.NodeConditionType]corev1.ConditionStatus{condition: "False", corev1.NodeReady: "True", corev1.NodeMemoryPressure: "True"})

	agent("True")
	says(map[corev1.NodeConditionType]corev1.ConditionStatus{condition: "True", corev1.NodeReady: "True", corev1.NodeMemoryPressure: "True"})
}
