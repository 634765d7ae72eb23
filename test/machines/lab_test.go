// Package machines verifies the guarantees of the operator for Machines end to end. It uses the real control plane
// with the RBAC rules of deploy/, the lab's Machine API with a cloud of simulated Windows hosts, and the real agent
// for Windows.
package machines

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// controlPlanes holds the unused control planes by platform, two for the platform of most tests. Each starts at its
// first use by a test.
var controlPlanes = map[string]chan *clustertest.Shared{}

func init() {
	for platform, number := range map[string]int{"AWS": 2, "Azure": 1, "GCP": 1, "VSphere": 1, "None": 1} {
		controlPlanes[platform] = make(chan *clustertest.Shared, number)
		for range number {
			controlPlanes[platform] <- clustertest.New(cluster.Options{
				Profile: cluster.OpenShift, Platform: platform, APIIntURL: "https://127.0.0.1", Audit: platform == "AWS",
			})
		}
	}
}

func TestMain(m *testing.M) {
	cleanups := []func() int{files.Remove, allFiles.Remove}
	for _, free := range controlPlanes {
		for range cap(free) {
			cleanups = append(cleanups, func() int { return (<-free).Stop() })
		}
	}
	os.Exit(e2e.Main(m, cleanups...))
}

const agentPath = "../../build/wicd.exe"

// Payloads with the real agent: a small payload, and a full payload for the test that measures the time.
var (
	files    = e2e.NewPayload(agentPath, payload.Options{SizePercent: 25})
	allFiles = e2e.NewPayload(agentPath, payload.Options{})
)

// lab is an environment with a test.
type lab struct {
	*testing.T
	*testenv.Environment
}

// parallelCluster runs a test in parallel with other callers and returns a control plane that the test owns until its
// end. Tests that create a clock call parallelCluster first, because the call may wait.
func parallelCluster(t *testing.T, platform string) *cluster.Cluster {
	t.Helper()
	t.Parallel()
	return exclusiveCluster(t, platform)
}

// exclusiveCluster is like parallelCluster, for a test that must not run in parallel with others.
func exclusiveCluster(t *testing.T, platform string) *cluster.Cluster {
	t.Helper()
	controlPlane := <-controlPlanes[platform]
	t.Cleanup(func() { controlPlanes[platform] <- controlPlane })
	return controlPlane.Cluster(t)
}

// start boots a lab on a control plane of a platform, in parallel with other tests if no control plane is given. It
// installs the operator with its key, without running the operator.
func start(t *testing.T, platform string, options testenv.Options) lab {
	t.Helper()
	if options.Cluster == nil {
		options.Cluster = parallelCluster(t, platform)
	}
	options.MachineAPI = platform != "None"
	if options.PayloadDir == "" {
		options.PayloadDir = files.Directory(t)
	}
	r := e2e.Boot(t, options)
	e2e.Install(t, r)
	return lab{t, r}
}

// requireNoError ends the test when a step outside the subject of the test fails.
func (l lab) requireNoError(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// inTime runs a wait with a time limit.
func (l lab) inTime(wait func(ctx context.Context) error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), e2e.WaitTimeout)
	defer cancel()
	l.requireNoError(wait(ctx))
}

func (l lab) startOperator() *testenv.Operator {
	l.Helper()
	o, err := l.RunOperator()
	l.requireNoError(err)
	return o
}

func (l lab) createMachineSet(name string, replicas int32, options testenv.MachineSetOptions) {
	l.Helper()
	l.requireNoError(l.CreateMachineSet(l.Context(), name, replicas, options))
}

// scaleMachineSet changes the replicas of a MachineSet.
func (l lab) scaleMachineSet(set string, replicas int32) {
	l.Helper()
	l.requireNoError(l.Scale(l.Context(), set, replicas))
}

// waitUntilReady waits until a MachineSet has the given number of Ready nodes, and returns the names of the Machines.
func (l lab) waitUntilReady(set string, replicas int) (names []string) {
	l.Helper()
	l.inTime(func(ctx context.Context) (err error) {
		names, err = l.WaitMachinesReady(ctx, set, replicas)
		return err
	})
	return names
}

// waitForOnlyMachine returns the name of a MachineSet's only Machine, once it exists.
func (l lab) waitForOnlyMachine(set string) (name string) {
	l.Helper()
	l.inTime(func(ctx context.Context) error {
		return l.WaitForMachines(ctx, set, "to be one", func(machines []machine) bool {
			if len(machines) == 1 {
				name = machines[0].Name
			}
			return name != ""
		})
	})
	return name
}

// waitForInstance waits until the instance of a Machine meets the condition, and returns the instance.
func (l lab) waitForInstance(machine, what string,
	condition func(*v1alpha1.WindowsInstance) bool) (found *v1alpha1.WindowsInstance) {
	l.Helper()
	l.inTime(func(ctx context.Context) error {
		return l.WaitForMachineInstance(ctx, machine, what, func(instance *v1alpha1.WindowsInstance) bool {
			found = instance
			return condition(instance)
		})
	})
	return found
}

// nodeOf returns the Node of a Machine.
func (l lab) nodeOf(name string) *corev1.Node {
	l.Helper()
	m, err := l.Machine(l.Context(), name)
	l.requireNoError(err)
	if m == nil || m.Status.NodeRef == nil {
		l.Fatalf("Machine %s refers to no node", name)
	}
	node := &corev1.Node{}
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node))
	return node
}

// waitForSecret waits until a Secret exists and meets the condition.
func (l lab) waitForSecret(key client.ObjectKey, what string, condition func(*corev1.Secret) bool) {
	l.Helper()
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "Secret "+key.Name+" "+what, &corev1.Secret{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				secret := &corev1.Secret{}
				err := reader.Get(ctx, key, secret)
				return err == nil && condition(secret), client.IgnoreNotFound(err)
			})
	})
}
