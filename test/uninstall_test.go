package test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

const (
	machineSet     = "winworker"
	otherNamespace = "windows-operator"
)

// ownCluster boots a lab with a separate control plane, on a platform with Machines, in parallel with other tests.
func ownCluster(t *testing.T, hosts int) *testenv.Environment {
	t.Helper()
	t.Parallel()
	r := e2e.Boot(t, testenv.Options{
		Hosts: testenv.Hosts(hosts), MachineAPI: true, PayloadDir: files.Directory(t),
		ControlPlane: cluster.Options{Platform: "AWS", APIIntURL: "https://127.0.0.1"},
	})
	waitUntil(t, "the Linux workers that the cluster came with are Nodes", func(ctx context.Context) (bool, error) {
		var sets machinev1.MachineSetList
		var machines machinev1.MachineList
		err := errors.Join(r.Client.List(ctx, &sets), r.Client.List(ctx, &machines))
		missing := 0
		for _, set := range sets.Items {
			missing += int(ptr.Deref(set.Spec.Replicas, 1))
		}
		for _, machine := range machines.Items {
			if machine.Status.NodeRef != nil {
				missing--
			}
		}
		return len(sets.Items) > 0 && missing == 0, err
	})
	return r
}

func waitUntil(t *testing.T, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, waitTimeout, true, holds); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// An administrator uninstalls the operator while nodes are left, reinstalls it, removes the nodes, and uninstalls
// the operator again.
func TestUninstall_NodesSurviveReinstallation(t *testing.T) {
	r := ownCluster(t, 2)
	m := newLifecycleManager(t, r)
	before := objectsOf(t, r)
	m.installOperator(testenv.Namespace)
	running := m.run()
	requireNoError(t, r.CreateMachineSet(t.Context(), machineSet, 1, testenv.MachineSetOptions{}))
	list(t, r)
	waitUntilAllReady(t, r)
	pod := runPod(t, r, r.Hosts()[0].NodeName())

	nodes := recordFleet(t, r)
	m.uninstallOperator(testenv.Namespace, running)
	since := map[string]time.Time{}
	for name := range nodes {
		since[name] = leaseRenewTime(t, r, name)
	}
	t.Run("the operator goes, with all its rights", func(t *testing.T) {
		for _, object := range m.bundleObjects(testenv.Namespace) {
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	})
	t.Run("its pods are not made again", func(t *testing.T) { deleteAllPods(t, r) })
	t.Run("its namespace goes, whatever is in it", func(t *testing.T) {
		var instances v1alpha1.WindowsInstanceList
		requireNoError(t, r.Client.List(t.Context(), &instances, client.InNamespace(testenv.Namespace)))
		if len(instances.Items) != 3 {
			t.Errorf("there are %d instances, want one for each node", len(instances.Items))
		}
		requireNoError(t, r.Client.Get(t.Context(), keyOf(testenv.Namespace, v1alpha1.DisruptionPolicyName), &v1alpha1.WindowsDisruptionPolicy{}))
		requireNoError(t, r.Client.Get(t.Context(), keyOf(testenv.Namespace, "cloud-private-key"), &corev1.Secret{}))
		deleteNamespace(t, r, testenv.Namespace)
	})
	t.Run("nodes, services and pods go on", func(t *testing.T) {
		nodes.checkContinuity(t, r, since)
		now := &corev1.Pod{}
		requireNoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), now))
		if now.UID != pod.UID || now.Status.Phase != corev1.PodRunning {
			t.Errorf("the pod is %s", now.Status.Phase)
		}
	})
	t.Run("what is left is what the guide lists", func(t *testing.T) {
		expectLeft(t, r, before, "With nodes left")
	})

	for _, namespace := range []string{otherNamespace, testenv.Namespace} {
		//
		t.Run("installed again in namespace "+namespace+", it takes the nodes over as they are", func(t *testing.T) {
			m := *m
			m.T = t
			m.installOperator(namespace)
			running = m.run()
			list(t, r)
			waitUntilAllReady(t, r)
			nodes.checkUnchanged(t, r)
			if namespace != testenv.Namespace {
				m.uninstallOperator(namespace, running)
				deleteNamespace(t, r, namespace)
			}
		})
	}
	t.Run("uninstalled after its hosts and Machines, it leaves nothing but what the guide lists", func(t *testing.T) {
		m := *m
		m.T = t
		requireNoError(t, r.Client.Delete(t.Context(), pod))
		set := &machinev1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: machineSet}}
		requireNoError(t, r.Client.Delete(t.Context(), set))
		requireNoError(t, r.DeleteInstances(t.Context()))
		waitUntilDeleted(t, r, "instance-1")
		waitUntilDeleted(t, r, "instance-2")
		waitUntil(t, "the Machines are gone", func(ctx context.Context) (bool, error) {
			machines, err := r.Machines(ctx, machineSet)
			var instances v1alpha1.WindowsInstanceList
			err = errors.Join(err, r.Client.List(ctx, &instances))
			return len(machines)+len(instances.Items) == 0, err
		})
		m.uninstallOperator(testenv.Namespace, running)
		deleteNamespace(t, r, testenv.Namespace)
		expectLeft(t, r, before, "After the nodes")
	})
	t.Run("in all that time no host was told to update Windows, or anything but the agent's verbs", func(t *testing.T) { checkOnlyAgentCommands(t, r) }) // R-158, L-18
}

// checkOnlyAgentCommands checks that hosts received only agent commands, and therefore no command to update Windows.
func checkOnlyAgentCommands(t *testing.T, r *testenv.Environment) {
	t.Helper()
	verb := regexp.MustCompile(`^C:\\(k|ProgramData\\ssh)\\wicd\\[0-9a-f]+\\wicd\.exe (facts|plan|apply|verify|remove|rollback|commit|reboot)( |$)`)
	for _, h := range append(r.Hosts(), r.MachineHosts()...) {
		for _, e := range h.Machine().Journal().Entries(func(e fake.Entry) bool { return e.Kind == fake.KindExec }) {
			if !verb.MatchString(e.Detail) {
				t.Errorf("host %s was told: %s", h.Options.Name, e.Detail)
			}
		}
	}
}

// waitUntilAllReady waits for the listed hosts and the Machines.
func waitUntilAllReady(t *testing.T, r *testenv.Environment) {
	t.Helper()
	waitUntilReady(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	_, err := r.WaitMachinesReady(ctx, machineSet, 1)
	requireNoError(t, err)
}

// windowsHosts returns all hosts, by node name.
func windowsHosts(t *testing.T, r *testenv.Environment) map[string]*testenv.Host {
	t.Helper()
	hosts := map[string]*testenv.Host{}
	for _, h := range r.Hosts() {
		hosts[h.NodeName()] = h
	}
	machines, err := r.Machines(t.Context(), machineSet)
	requireNoError(t, err)
	for _, machine := range machines {
		if machine.Status.NodeRef == nil {
			t.Fatalf("Machine %s has no node", machine.Name)
		}
		hosts[machine.Status.NodeRef.Name] = r.MachineHost(machine.Name)
	}
	return hosts
}

// fleetState records the state of nodes and hosts.
type fleetState map[string]nodeState

type nodeState struct {
	uid      types.UID
	bootID   string
	services map[string]int // process IDs
	entries  int            // of the host's journal
}

func recordFleet(t *testing.T, r *testenv.Environment) fleetState {
	t.Helper()
	m := fleetState{}
	for name, h := range windowsHosts(t, r) {
		m[name] = nodeState{
			uid: getNode(t, r, name).UID, bootID: h.Machine().BootID(), services: servicesOf(t, h),
			entries: len(h.Machine().Journal().Entries(nil)),
		}
	}
	return m
}

// servicesOf returns the process IDs of a node's running services.
func servicesOf(t *testing.T, h *testenv.Host) map[string]int {
	t.Helper()
	services, err := h.Machine().Host().Services.Query(t.Context())
	requireNoError(t, err)
	running := map[string]int{}
	for _, service := range services {
		if service.State == host.ServiceRunning && strings.HasPrefix(service.Description, "OpenShift managed") {
			running[service.Name] = service.PID
		}
	}
	if len(running) < 5 {
		t.Errorf("%s runs only %v", h.Options.Name, running)
	}
	return running
}

func leaseRenewTime(t *testing.T, r *testenv.Environment, node string) time.Time {
	t.Helper()
	lease := &coordinationv1.Lease{}
	requireNoError(t, r.Client.Get(t.Context(), keyOf(corev1.NamespaceNodeLease, node), lease))
	return lease.Spec.RenewTime.Time
}

// checkContinuity waits until each node has renewed its lease several times since, and checks that the node is
// unchanged and Ready.
func (m fleetState) checkContinuity(t *testing.T, r *testenv.Environment, since map[string]time.Time) {
	t.Helper()
	const some = 20 * time.Second // a kubelet renews its lease every 10 s
	for name := range m {
		waitUntil(t, "node "+name+" renews its lease", func(context.Context) (bool, error) {
			return leaseRenewTime(t, r, name).Sub(since[name]) >= some, nil
		})
		if !isReady(getNode(t, r, name)) {
			t.Errorf("node %s is not Ready", name)
		}
	}
	m.checkUnchanged(t, r)
	for name, h := range windowsHosts(t, r) {
		touched := slices.DeleteFunc(h.Machine().Journal().Entries(nil)[m[name].entries:], func(e fake.Entry) bool {
			return !slices.Contains([]fake.Kind{fake.KindConnection, fake.KindExec, fake.KindService, fake.KindReboot}, e.Kind)
		})
		if len(touched) > 0 {
			t.Errorf("something happened to host %s: %+v", name, touched)
		}
	}
}

// checkUnchanged checks that no node was recreated and no service or host restarted.
func (m fleetState) checkUnchanged(t *testing.T, r *testenv.Environment) {
	t.Helper()
	hosts := windowsHosts(t, r)
	if got, want := slices.Sorted(maps.Keys(hosts)), slices.Sorted(maps.Keys(m)); !slices.Equal(got, want) {
		t.Fatalf("the nodes are %v, they were %v", got, want)
	}
	for name, was := range m {
		h := hosts[name]
		if now := getNode(t, r, name); now.UID != was.uid || now.Spec.Unschedulable {
			t.Errorf("node %s is %s, unschedulable %t; it was %s", name, now.UID, now.Spec.Unschedulable, was.uid)
		}
		if now := servicesOf(t, h); !maps.Equal(now, was.services) {
			t.Errorf("the services of %s run as %v, they were %v", name, now, was.services)
		}
		if h.Machine().BootID() != was.bootID {
			t.Errorf("host %s was restarted", name)
		}
	}
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// runPod creates a pod on a node and waits until the pod runs.
func runPod(t *testing.T, r *testenv.Environment, node string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workload"},
		Spec: corev1.PodSpec{
			NodeName: node, OS: &corev1.PodOS{Name: corev1.Windows},
			Tolerations: []corev1.Toleration{{Key: v1alpha1.TaintWindows, Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "web", Image: "example.com/web"}},
		},
	}
	requireNoError(t, r.Client.Create(t.Context(), pod))
	waitUntil(t, "the pod runs", func(ctx context.Context) (bool, error) {
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodRunning, err
	})
	return pod
}

// deleteAllPods deletes all pods of the operator's namespace as described in the guide, and waits until none is
// left.
func deleteAllPods(t *testing.T, r *testenv.Environment) {
	t.Helper()
	requireNoError(t, r.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(testenv.Namespace)))
	waitUntil(t, "there are no pods", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := r.Client.List(ctx, &pods, client.InNamespace(testenv.Namespace))
		return len(pods.Items) == 0, err
	})
	for _, kind := range []string{"Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind + "List"})
		requireNoError(t, r.Client.List(t.Context(), list, client.InNamespace(testenv.Namespace)))
		if len(list.Items) > 0 {
			t.Errorf("%s %s would make pods again", kind, list.Items[0].GetName())
		}
	}
}

// deleteNamespace deletes a namespace and waits until it no longer exists.
func deleteNamespace(t *testing.T, r *testenv.Environment, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	requireNoError(t, r.Client.Delete(t.Context(), namespace))
	waitUntil(t, "namespace "+name+" is gone", func(ctx context.Context) (bool, error) {
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	waitUntil(t, "the admission policies are gone that belonged to it", func(ctx context.Context) (bool, error) {
		var policies admissionv1.ValidatingAdmissionPolicyList
		var bindings admissionv1.ValidatingAdmissionPolicyBindingList
		ownedByOperator := client.MatchingLabels{"app.kubernetes.io/managed-by": "windows-machine-config-operator"}
		err := errors.Join(r.Client.List(ctx, &policies, ownedByOperator), r.Client.List(ctx, &bindings, ownedByOperator))
		return len(policies.Items)+len(bindings.Items) == 0, err
	})
}
