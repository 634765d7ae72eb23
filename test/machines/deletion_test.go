package machines

import (
	"bytes"
	"context"
	"testing"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// A Machine that is deleted at any moment of its configuration leaves no objects.
//
func TestMachineDeletion_LeavesNothing(t *testing.T) {
	l := start(t, "AWS", testenv.Options{VM: testenv.VMOptions{RebootDuration: time.Second}})
	l.startOperator()
	reached := func(condition string) func(*v1alpha1.WindowsInstance) bool {
		return func(i *v1alpha1.WindowsInstance) bool {
			return i != nil && meta.IsStatusConditionTrue(i.Status.Conditions, condition)
		}
	}
	for _, stage := range []struct {
		set, name string
		at        func(*v1alpha1.WindowsInstance) bool
	}{
		{"known", "as soon as it is known", func(i *v1alpha1.WindowsInstance) bool { return i != nil }},
		{"reached", "once its host was reached", reached(v1alpha1.ConditionReachable)},
		{"restarts", "while its host restarts", func(i *v1alpha1.WindowsInstance) bool {
			return i != nil && i.Status.Summary == v1alpha1.ReasonRebooting
		}},
		{"installed", "once its host has all programs", reached(v1alpha1.ConditionInstalled)},
		{"joined", "once it has a node", reached(v1alpha1.ConditionJoined)},
		{"ready", "when its node is Ready", reached(v1alpha1.ConditionReady)},
	} {
		t.Run(stage.name, func(t *testing.T) {
			l := lab{t, l.Environment}
			l.createMachineSet(stage.set, 1, testenv.MachineSetOptions{})
			name := l.waitForOnlyMachine(stage.set)
			instance := l.waitForInstance(name, "to be there "+stage.name, stage.at)
			l.scaleMachineSet(stage.set, 0)
			node := ""
			if instance.Status.NodeRef != nil {
				node = instance.Status.NodeRef.Name
			}
			l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, name, node) })
			l.checkNoWindows()
		})
	}
}

// checkNoWindows checks that the cluster has no Windows node, no instance and no open certificate request.
func (l lab) checkNoWindows() {
	l.Helper()
	var nodes corev1.NodeList
	l.requireNoError(l.Client.List(l.Context(), &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"}))
	for _, node := range nodes.Items {
		l.Errorf("node %s is left", node.Name)
	}
	var instances v1alpha1.WindowsInstanceList
	l.requireNoError(l.Client.List(l.Context(), &instances))
	for i := range instances.Items {
		l.Errorf("instance is left: %s", testenv.Explain(&instances.Items[i]))
	}
	var requests certificatesv1.CertificateSigningRequestList
	l.requireNoError(l.Client.List(l.Context(), &requests))
	for _, request := range requests.Items {
		if len(request.Status.Conditions) == 0 {
			l.Errorf("certificate request %s of %s is left", request.Name, request.Spec.Username)
		}
	}
}

//
func TestMachineDeletion_DeadHostReplaced(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	l.startOperator()
	l.createMachineSet("windows", 1, testenv.MachineSetOptions{})
	name := l.waitUntilReady("windows", 1)[0]
	node := l.nodeOf(name).Name
	l.MachineHost(name).Machine().PowerOff()
	l.requireNoError(l.DeleteMachine(t.Context(), name))
	l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, name, node) })
	l.waitUntilReady("windows", 1)
}

// The host of a Machine fails while a pod runs on the node, and a MachineHealthCheck has the Machine replaced.
//
func TestMachineDeletion_HealthCheckReplacesMachineWithPods(t *testing.T) {
	l := start(t, "AWS", testenv.Options{Cluster: parallelCluster(t, "AWS"), LinuxNodes: 1, Clock: e2e.FastClock(t)})
	trail := l.openTrail()
	l.startOperator()
	l.createMachineSet("windows", 1, testenv.MachineSetOptions{})
	name := l.waitUntilReady("windows", 1)[0]
	node := l.nodeOf(name)
	w := e2e.Deploy(t, l.Environment, 1, nil, "0")
	l.requireNoError(l.Client.Delete(t.Context(), w.Budget(t))) // The budget never allows the eviction of the only pod once that pod is not Ready.
	l.requireNoError(l.Client.Create(t.Context(), &machinev1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: "windows"},
		Spec: machinev1.MachineHealthCheckSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"machine.openshift.io/os-id": "Windows"}},
			UnhealthyConditions: []machinev1.UnhealthyCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
				Timeout: metav1.Duration{Duration: 3 * time.Minute}}},
			// The Machine API's clock is ahead of the API server's clock, which determines the age of a Machine.
			NodeStartupTimeout: &metav1.Duration{},
		},
	}))

	l.MachineHost(name).Machine().PowerOff()
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "the node to be NotReady", &corev1.Node{}, func(ctx context.Context, reader client.Reader) (bool, error) {
			now := &corev1.Node{}
			err := reader.Get(ctx, client.ObjectKeyFromObject(node), now)
			return err == nil && !isNodeReady(now), err
		})
	})
	l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, name, node.Name) })
	if next := l.waitUntilReady("windows", 1)[0]; next == name {
		t.Errorf("Machine %s was not replaced", name)
	}
	w.AwaitPods(t, 1)
	trail.checkNoWrites()
}

// changeMachine changes a Machine as kubectl edit does.
func (l lab) changeMachine(name string, change func(*machine)) {
	l.Helper()
	m, err := l.Machine(l.Context(), name)
	l.requireNoError(err)
	after := m.DeepCopy()
	change(after)
	l.requireNoError(l.Client.Patch(l.Context(), after, client.MergeFrom(m)))
}

// waitUntilUnmanaged waits until the operator stops managing a host, and returns a counter of the connections to the
// host.
func (l lab) waitUntilUnmanaged(name, reason string) (execs func() int) {
	l.Helper()
	machine := l.MachineHost(name).Machine()
	l.waitForInstance(name, "to be left alone", func(i *v1alpha1.WindowsInstance) bool {
		return i != nil && i.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged && i.Status.Summary == reason
	})
	return func() int { return machine.Journal().Count(fake.KindConnection) }
}

//
func TestMachineDeletion_LeftToMachineAPI(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	l.startOperator()
	l.createMachineSet("windows", 1, testenv.MachineSetOptions{})
	name := l.waitUntilReady("windows", 1)[0]
	node := l.nodeOf(name).Name
	l.changeMachine(name, func(m *machine) {
		m.Spec.LifecycleHooks.PreDrain = []machinev1.LifecycleHook{{Name: "test", Owner: "test"}}
	})
	l.scaleMachineSet("windows", 0)
	connections := l.waitUntilUnmanaged(name, v1alpha1.ReasonMachineDeleting)
	before := connections()
	if n := l.nodeOf(name); n.Spec.Unschedulable {
		t.Error("its node was cordoned, before the Machine API does")
	}
	l.changeMachine(name, func(m *machine) { m.Spec.LifecycleHooks.PreDrain = nil })
	l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, name, node) })
	if after := connections(); after != before {
		t.Errorf("the operator has connected %d times to a host that was being deleted", after-before)
	}
}

//
func TestMachines_IgnoredMachineUnmanagedUntilReverted(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	l.startOperator()
	l.createMachineSet("windows", 1, testenv.MachineSetOptions{})
	name := l.waitUntilReady("windows", 1)[0]
	uid := l.nodeOf(name).UID
	for what, change := range map[string]struct{ ignore, restore func(*machine) }{
		"by the label that says so": {
			func(m *machine) {
				m.Labels["windowsmachineconfig.openshift.io/ignore"] = "true"
			}, func(m *machine) { delete(m.Labels, "windowsmachineconfig.openshift.io/ignore") }},
		"by losing its os-id": {
			func(m *machine) { delete(m.Labels, "machine.openshift.io/os-id") }, func(m *machine) {
				m.Labels["machine.openshift.io/os-id"] = "Windows"
			}},
	} {
		t.Run(what, func(t *testing.T) {
			l := lab{t, l.Environment}
			l.changeMachine(name, change.ignore)
			l.waitUntilUnmanaged(name, v1alpha1.ReasonMachineIgnored)
			if n := l.nodeOf(name); n.UID != uid {
				t.Error("its node was made anew")
			}
			l.changeMachine(name, change.restore)
			l.waitForInstance(name, "to be Ready again", testenv.IsReady)
		})
	}
}

//
func TestMachines_NewImageAppliesToNewMachines(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	l.startOperator()
	l.createMachineSet("windows", 1, testenv.MachineSetOptions{Image: "ami-windows-2019"})
	first := l.waitUntilReady("windows", 1)[0]
	if build := l.nodeOf(first).Labels[corev1.LabelWindowsBuild]; build != "10.0.17763" {
		t.Fatalf("the first node has build %s", build)
	}
	set := &machinev1.MachineSet{}
	l.requireNoError(l.Client.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: "windows"}, set))
	before := set.DeepCopy()
	value := set.Spec.Template.Spec.ProviderSpec.Value
	value.Raw = bytes.Replace(value.Raw, []byte("ami-windows-2019"), []byte("ami-windows-2022"), 1)
	l.requireNoError(l.Client.Patch(t.Context(), set, client.MergeFrom(before)))
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "the new template to be known", &machinev1.MachineSet{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				known := &machinev1.MachineSet{}
				err := reader.Get(ctx, client.ObjectKeyFromObject(set), known)
				return err == nil && known.Status.ObservedGeneration >= set.Generation, err
			})
	})
	node := l.nodeOf(first).Name
	l.requireNoError(l.DeleteMachine(t.Context(), first))
	l.inTime(func(ctx context.Context) error { return l.WaitMachineGone(ctx, first, node) })
	if build := l.nodeOf(l.waitUntilReady("windows", 1)[0]).Labels[corev1.LabelWindowsBuild]; build != "10.0.20348" {
		t.Errorf("the new node has build %s", build)
	}
}
