package fakemachineapi

import (
	"context"
	"strings"
	"testing"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func healthCheck(namespace string, edit ...func(*machinev1.MachineHealthCheck)) *machinev1.MachineHealthCheck {
	check := &machinev1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Name: "check", Namespace: namespace},
		Spec: machinev1.MachineHealthCheckSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{labelOS: Windows}},
			UnhealthyConditions: []machinev1.UnhealthyCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Timeout: metav1.Duration{Duration: 5 * time.Minute}},
				{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Timeout: metav1.Duration{Duration: 8 * time.Minute}},
			},
		},
	}
	for _, e := range edit {
		e(check)
	}
	return check
}

//
func TestHealthCheck_ReplacesUnhealthyMachine(t *testing.T) {
	f := start(t, fastClock)
	f.newSet("win", 3)
	machines := f.awaitMachines("win", 3, machinev1.PhaseProvisioned)
	var nodes []*corev1.Node
	for i := range machines {
		nodes = append(nodes, f.joinNode(&machines[i], corev1.ConditionTrue))
	}
	f.awaitMachines("win", 3, machinev1.PhaseRunning)
	check := healthCheck(f.namespace, func(c *machinev1.MachineHealthCheck) {
		c.Spec.MaxUnhealthy = ptr.To(intstr.FromString("40%"))
		// Creation times of Machines use the clock of the API server, which the fast clock overtakes: a new
		// Machine would be overdue.
		c.Spec.NodeStartupTimeout = &metav1.Duration{}
	})
	f.requireNoError(f.Create(t.Context(), check))
	f.pollUntil("all are healthy", f.checkStatus(check, 3, 3))

	since := f.clock.Now()
	f.reportReady(nodes[0], corev1.ConditionUnknown)
	f.awaitGone(&machines[0])
	if waited := f.clock.Since(since); waited < 5*time.Minute-time.Second {
		t.Errorf("it was gone after %s", waited)
	}
	now := f.awaitMachines("win", 3, machinev1.PhaseProvisioned, machinev1.PhaseRunning)
	f.awaitGone(nodes[0])
	for i := range now {
		if now[i].Status.NodeRef == nil {
			nodes[0] = f.joinNode(&now[i], corev1.ConditionTrue)
		}
	}
	f.pollUntil("all are healthy again", f.checkStatus(check, 3, 3))
}

func TestHealthCheck_StopsAboveMaxUnhealthy(t *testing.T) {
	f := start(t, fastClock)
	f.newSet("win", 2)
	machines := f.awaitMachines("win", 2, machinev1.PhaseProvisioned)
	check := healthCheck(f.namespace, func(c *machinev1.MachineHealthCheck) {
		c.Spec.MaxUnhealthy = ptr.To(intstr.FromInt32(1))
		c.Spec.NodeStartupTimeout = &metav1.Duration{Duration: time.Minute}
	})
	f.requireNoError(f.Create(t.Context(), check))
	f.pollUntil("remediation is restricted", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(check), check)
		return len(check.Status.Conditions) == 1 && check.Status.Conditions[0].Reason == machinev1.TooManyUnhealthyReason, err
	})
	f.clock.Step(time.Hour)
	for i := range machines {
		f.requireNoError(f.Get(t.Context(), client.ObjectKeyFromObject(&machines[i]), &machines[i]))
		if !machines[i].DeletionTimestamp.IsZero() {
			t.Errorf("Machine %s is deleted", machines[i].Name)
		}
	}
	f.joinNode(&machines[0], corev1.ConditionTrue)
	f.awaitGone(&machines[1])
}

func TestHealthCheck_MachineWithoutControllerNotDeleted(t *testing.T) {
	f := start(t)
	f.newMachine("alone", func(m *machinev1.Machine) { m.Spec.ProviderSpec = rawSpec(map[string]any{}) })
	f.awaitPhase("alone", machinev1.PhaseFailed)
	f.requireNoError(f.Create(t.Context(), healthCheck(f.namespace)))
	f.awaitEvent("SkippedNoController", "alone")
	f.awaitPhase("alone", machinev1.PhaseFailed)
}

func (f *fixture) checkStatus(check *machinev1.MachineHealthCheck, expected, healthy int) func(context.Context) (bool,
	error) {
	return func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(check), check)
		return ptr.Deref(check.Status.ExpectedMachines, -1) == expected &&
			ptr.Deref(check.Status.CurrentHealthy, -1) == healthy, err
	}
}

func TestUnhealthy(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	node := func(status corev1.ConditionStatus, since time.Duration) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
			Status: status, LastTransitionTime: ago(since)}}}}
	}
	linked := machinev1.MachineStatus{NodeRef: &corev1.ObjectReference{Name: "node"}}
	for name, c := range map[string]struct {
		created time.Duration
		status  machinev1.MachineStatus
		node    *corev1.Node
		startup *metav1.Duration
		reason  string
		wait    time.Duration
	}{
		"a Machine with a ready Node is healthy": {0, linked, node(corev1.ConditionTrue, time.Hour),
			nil, "", 0},
		"a failed Machine is unhealthy": {0,
			machinev1.MachineStatus{Phase: ptr.To(machinev1.PhaseFailed)}, nil, nil, "Failed", 0},
		"a new Machine has 10 minutes to get a Node": {time.Minute, machinev1.MachineStatus{}, nil, nil, "",
			9*time.Minute + time.Second},
		"an old Machine without a Node is unhealthy": {time.Hour, machinev1.MachineStatus{},
			nil, nil, "no Node", 0},
		"without a start-up timeout a Machine may wait forever": {time.Hour, machinev1.MachineStatus{}, nil,
			&metav1.Duration{}, "", 0},
		"a Machine whose Node was deleted is unhealthy at once": {0, linked, nil, nil, "is gone", 0},
		"a Node that is not ready has its time": {0, linked, node(corev1.ConditionFalse, time.Minute),
			nil, "", 7*time.Minute + time.Second},
		"a Node that is not ready for too long makes it unhealthy": {0, linked, node(corev1.ConditionFalse, time.Hour),
			nil, "Ready is False", 0},
		"a Node that is unreachable for too long makes it unhealthy": {0, linked,
			node(corev1.ConditionUnknown, 6*time.Minute), nil, "Ready is Unknown", 0},
		"a Node whose kubelet has not reported yet makes it not so": {0, linked, &corev1.Node{}, nil, "", 0},
		"a Node that is unreachable for exactly its time is healthy": {0, linked,
			node(corev1.ConditionUnknown, 5*time.Minute), nil, "", time.Second},
		"a start-up timeout of one's own is followed while it may end": {time.Minute, machinev1.MachineStatus{}, nil,
			&metav1.Duration{Duration: 20 * time.Minute}, "", 19*time.Minute + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			check := healthCheck("n", func(check *machinev1.MachineHealthCheck) { check.Spec.NodeStartupTimeout = c.startup })
			m := &machinev1.Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(c.created)}, Status: c.status}
			reason, wait := unhealthyReason(check, m, c.node, now)
			if !strings.Contains(reason, c.reason) || (reason == "") != (c.reason == "") || wait != c.wait {
				t.Errorf("%q after %s, want %q after %s", reason, wait, c.reason, c.wait)
			}
		})
	}
}

func TestMaxUnhealthy(t *testing.T) {
	for text, want := range map[string]int{"": 10, "3": 3, "0": 0, "0%": 0, "39%": 3, "100%": 10, "many": -1, "-1": -1} {
		var limit *intstr.IntOrString
		if text != "" {
			limit = ptr.To(intstr.FromString(text))
		}
		if got, err := maxUnhealthy(limit, 10); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	if got, err := maxUnhealthy(ptr.To(intstr.FromInt32(4)), 10); got != 4 || err != nil {
		t.Errorf("4: %d, %v", got, err)
	}
}
