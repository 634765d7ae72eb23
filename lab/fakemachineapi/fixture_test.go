package fakemachineapi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift, Platform: "AWS", BootTimeout: 5 * time.Minute})

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(lab.Main(m))
}

// memoryCloud is a cloud with a map of virtual machines.
type memoryCloud struct {
	mu      sync.Mutex
	pending bool // new virtual machines get no addresses
	created []VirtualMachine
	vms     map[string]VirtualMachineStatus
}

var lastAddress atomic.Int32

func (c *memoryCloud) Create(_ context.Context, vm VirtualMachine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.vms[vm.ID]; ok {
		return nil
	}
	c.created = append(c.created, vm)
	c.vms[vm.ID] = VirtualMachineStatus{State: Pending, ProviderID: vm.ProviderID}
	if !c.pending {
		c.bootMachine(vm.ID)
	}
	return nil
}

func (c *memoryCloud) bootMachine(id string) {
	vm := c.vms[id]
	n := lastAddress.Add(1)
	vm.State, vm.Addresses = Running,
		[]corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.77.%d.%d", n/250, 1+n%250)}}
	c.vms[id] = vm
}

// holdBack keeps new virtual machines without addresses until bootAll.
func (c *memoryCloud) holdBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = true
}

func (c *memoryCloud) bootAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = false
	for id := range c.vms {
		c.bootMachine(id)
	}
}

func (c *memoryCloud) Describe(_ context.Context, id string) (VirtualMachineStatus, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	vm, ok := c.vms[id]
	return vm, ok, nil
}

func (c *memoryCloud) Delete(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.vms, id)
	return nil
}

func (c *memoryCloud) countMachines() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.vms)
}

func (c *memoryCloud) createdFor(name string) []VirtualMachine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.created), func(vm VirtualMachine) bool { return vm.MachineName != name })
}

// fixture is a Machine API in a separate namespace.
type fixture struct {
	client.WithWatch
	t         *testing.T
	namespace string
	memory    *memoryCloud
	faults    *Faults
	clock     *clocktesting.FakeClock // nil: the real clock
	stop      func()
}

func start(t *testing.T, options ...func(*Options, *fixture)) *fixture {
	t.Helper()
	c := lab.Cluster(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, machinev1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.NewWithWatch(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{WithWatch: admin, t: t, namespace: clustertest.Namespace(t, c),
		memory: &memoryCloud{vms: map[string]VirtualMachineStatus{}}}
	f.faults = NewFaults(f.memory)
	f.run(options...)
	return f
}

// run starts the Machine API; f.stop ends it early.
func (f *fixture) run(options ...func(*Options, *fixture)) {
	o := Options{Cloud: f.faults, Namespace: f.namespace}
	for _, option := range options {
		option(&o, f)
	}
	if f.clock != nil {
		o.Clock = f.clock
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, lab.Cluster(f.t).Config, o) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(f.stop)
}

// fastClock advances the clock by five seconds at each poll while the test waits.
func fastClock(_ *Options, f *fixture) { f.clock = clocktesting.NewFakeClock(time.Now()) }

func withPlatform(name string) func(*Options, *fixture) {
	return func(o *Options, _ *fixture) { o.Platform = name }
}

func (f *fixture) pollUntil(what string, condition func(context.Context) (bool, error)) {
	f.t.Helper()
	err := wait.PollUntilContextTimeout(f.t.Context(), 20*time.Millisecond, 3*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			if f.clock != nil {
				f.clock.Step(5 * time.Second)
			}
			return condition(ctx)
		})
	if err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
}

func (f *fixture) requireNoError(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// updateObject changes an object and retries on conflicts.
func updateObject[T client.Object](f *fixture, object T, edit func(T)) {
	f.t.Helper()
	f.pollUntil("change "+object.GetName(), func(ctx context.Context) (bool, error) {
		if err := f.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		edit(object)
		err := f.Update(ctx, object)
		return err == nil, client.IgnoreNotFound(ignoreConflict(err))
	})
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (f *fixture) newMachine(name string, edit ...func(*machinev1.Machine)) *machinev1.Machine {
	f.t.Helper()
	m := &machinev1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace, Labels: map[string]string{labelOS: Windows}},
		Spec:       machinev1.MachineSpec{ProviderSpec: awsSpec("ami-1", "")},
	}
	for _, e := range edit {
		e(m)
	}
	f.requireNoError(f.Create(f.t.Context(), m))
	return m
}

func awsSpec(image, secret string) machinev1.ProviderSpec {
	value := map[string]any{
		"ami": map[string]any{"id": image}, "instanceType": "m5a.large",
		"placement": map[string]any{"region": "us-east-1", "availabilityZone": "us-east-1b"},
	}
	if secret != "" {
		value["userDataSecret"] = map[string]any{"name": secret}
	}
	return rawSpec(value)
}

func rawSpec(value any) machinev1.ProviderSpec {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return machinev1.ProviderSpec{Value: &runtime.RawExtension{Raw: raw}}
}

func (f *fixture) awaitMachine(what, name string, condition func(*machinev1.Machine) bool) *machinev1.Machine {
	f.t.Helper()
	m := &machinev1.Machine{}
	f.pollUntil(what, func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, m)
		return err == nil && condition(m), err
	})
	return m
}

func (f *fixture) awaitPhase(name, want string) *machinev1.Machine {
	f.t.Helper()
	return f.awaitMachine("Machine "+name+" is "+want, name, func(m *machinev1.Machine) bool { return currentPhase(m) == want })
}

func (f *fixture) awaitGone(object client.Object) {
	f.t.Helper()
	f.pollUntil(object.GetName()+" is gone", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func (f *fixture) awaitEvent(reason, about string) {
	f.t.Helper()
	f.pollUntil("an event "+reason, func(ctx context.Context) (bool, error) {
		list := &corev1.EventList{}
		err := f.List(ctx, list, client.InNamespace(f.namespace))
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return e.Reason == reason && e.InvolvedObject.Name == about
		}), err
	})
}
