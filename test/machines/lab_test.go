// Package machines proves end to end what the operator promises for Machines: on the real control plane with the rights that deploy/ gives,
// with the lab's Machine API and its cloud of simulated Windows hosts, and with the real agent for Windows.
package machines

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// platforms are the control planes that tests share, by platform. Each starts when a test first asks for it.
var platforms = map[string]*clustertest.Shared{}

func init() {
	for _, platform := range []string{"AWS", "Azure", "VSphere", "None"} {
		platforms[platform] = clustertest.New(cluster.Options{
			Profile: cluster.OpenShift, Platform: platform, APIIntURL: "https://127.0.0.1", Audit: platform == "AWS",
		})
	}
}

func TestMain(m *testing.M) {
	logTo(os.Getenv("OPERATOR_LOG"))
	code := m.Run()
	for _, platform := range platforms {
		code = max(code, platform.Stop())
	}
	if dir, _ := madePayload(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// logTo writes what operators log to a file, for a look at a failed test; nowhere without a path.
func logTo(path string) {
	if path == "" {
		ctrl.SetLogger(logr.Discard())
		return
	}
	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(file)))
}

// madePayload is the payload with the real agent in it, made once for all tests.
var madePayload = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "wmco-test-payload-")
	if err != nil {
		return "", err
	}
	_, err = payload.Generate(dir, "../../build/wicd.exe", "1.0.0-lab", payload.Options{})
	return dir, err
})

// limit is how long a test waits for what takes some seconds, on a busy machine.
const limit = rig.Patience

// lab is a rig with its test.
type lab struct {
	*testing.T
	*rig.Rig
}

// start boots a lab on the control plane of a platform and installs the operator with its key, but does not run it.
func start(t *testing.T, platform string, options rig.Options) lab {
	t.Helper()
	dir, err := madePayload()
	if err != nil {
		t.Fatalf("make the payload (is build/wicd.exe built?): %v", err)
	}
	options.Cluster, options.PayloadDir, options.Log = platforms[platform].Cluster(t), dir, ctrl.Log
	options.MachineAPI = platform != "None"
	r, err := rig.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the lab: %v", err)
		}
	})
	l := lab{t, r}
	_, err = r.InstallOperator(t.Context(), "")
	l.must(errors.Join(err, r.CreateKey(t.Context())))
	return l
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
	ctx, cancel := context.WithTimeout(l.Context(), limit)
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

// only is the name of the one Machine of a MachineSet, once there is one.
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
func (l lab) instanceBecomes(machine, what string, condition func(*v1alpha1.WindowsInstance) bool) (found *v1alpha1.WindowsInstance) {
	l.Helper()
	l.inTime(func(ctx context.Context) error {
		return l.WaitForMachineInstance(ctx, machine, what, func(instance *v1alpha1.WindowsInstance) bool {
			found = instance
			return condition(instance)
		})
	})
	return found
}

// nodeOf is the Node of a Machine.
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
		return l.WaitFor(ctx, "Secret "+key.Name+" "+what, &corev1.Secret{}, func(ctx context.Context, reader client.Reader) (bool, error) {
			secret := &corev1.Secret{}
			err := reader.Get(ctx, key, secret)
			return err == nil && condition(secret), client.IgnoreNotFound(err)
		})
	})
}
