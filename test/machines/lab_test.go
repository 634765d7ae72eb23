// Package machines proves end to end what the operator promises for Machines: on the real control plane with the rights
// that deploy/ gives, with the lab's Machine API and its cloud of simulated Windows hosts, and with the real agent for
// Windows.
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
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
)

// controlPlanes are those that no test has, by platform: two where most tests are. Each starts when a test first takes it.
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
	takeAway := []func() int{files.Remove, allFiles.Remove}
	for _, free := range controlPlanes {
		for range cap(free) {
			takeAway = append(takeAway, func() int { return (<-free).Stop() })
		}
	}
	os.Exit(rigtest.Main(m, takeAway...))
}

const agentPath = "../../build/wicd.exe"

// Payloads with the real agent in them: a small one, and one for the test that measures how long it takes.
var (
	files    = rigtest.NewPayload(agentPath, payload.Options{SizePercent: 25})
	allFiles = rigtest.NewPayload(agentPath, payload.Options{})
)

// lab is a rig with its test.
type lab struct {
	*testing.T
	*rig.Rig
}

// besides lets a test run beside others that call it, and gives it a control plane that it has for itself until it ends.
// A test that makes a clock calls it before: until then, it may wait.
func besides(t *testing.T, platform string) *cluster.Cluster {
	t.Helper()
	t.Parallel()
	return alone(t, platform)
}

// alone is besides for a test beside which no other may run.
func alone(t *testing.T, platform string) *cluster.Cluster {
	t.Helper()
	taken := <-controlPlanes[platform]
	t.Cleanup(func() { controlPlanes[platform] <- taken })
	return taken.Cluster(t)
}

// start boots a lab on a control plane of a platform, beside other tests if none is given, and installs the operator
// with its key, but does not run it.
func start(t *testing.T, platform string, options rig.Options) lab {
	t.Helper()
	if options.Cluster == nil {
		options.Cluster = besides(t, platform)
	}
	options.MachineAPI = platform != "None"
	if options.PayloadDir == "" {
		options.PayloadDir = files.Directory(t)
	}
	r := rigtest.Boot(t, options)
	rigtest.Install(t, r)
	return lab{t, r}
}

// must ends the test when something that is not its subject fails.
func (l lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// inTime runs a wait that must end in time.
func (l lab) inTime(wait func(ctx context.Context) error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), rigtest.Patience)
	defer cancel()
	l.must(wait(ctx))
}

// operate starts the operator.
func (l lab) operate() *rig.Operator {
	l.Helper()
	o, err := l.RunOperator()
	l.must(err)
	return o
}

// machineSet makes a Windows MachineSet.
func (l lab) machineSet(name string, replicas int32, options rig.MachineSetOptions) {
	l.Helper()
	l.must(l.CreateMachineSet(l.Context(), name, replicas, options))
}

// scale changes the replicas of a MachineSet.
func (l lab) scale(set string, replicas int32) {
	l.Helper()
	l.must(l.Scale(l.Context(), set, replicas))
}

// ready waits until a MachineSet has so many Ready nodes, and returns the names of its Machines.
func (l lab) ready(set string, replicas int) (names []string) {
	l.Helper()
	l.inTime(func(ctx context.Context) (err error) {
		names, err = l.WaitMachinesReady(ctx, set, replicas)
		return err
	})
	return names
}

// only returns the name of the one Machine of a MachineSet, once there is one.
func (l lab) only(set string) (name string) {
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

// instanceBecomes waits until the instance of a Machine is as wanted, and returns it.
func (l lab) instanceBecomes(machine, what string,
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
	l.must(err)
	if m == nil || m.Status.NodeRef == nil {
		l.Fatalf("Machine %s refers to no node", name)
	}
	node := &corev1.Node{}
	l.must(l.Client.Get(l.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node))
	return node
}

// secretBecomes waits until a Secret is there and as wanted.
func (l lab) secretBecomes(key client.ObjectKey, what string, condition func(*corev1.Secret) bool) {
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
