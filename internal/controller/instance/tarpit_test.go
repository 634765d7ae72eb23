package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// The maximum numbers of concurrent jobs on hosts that were never nodes, as known to administrators.
const (
	maxFirstContacts = 256
	maxSlowHosts     = 128 // hosts that failed slowly
)

// tarpits are a network with addresses in tarpitNetwork that accept connections and never respond. All other
// addresses lead to the trial's host.
type tarpits struct {
	*trial
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// answers has the hosts that are not tarpits; nil for the trial's host.
	answers *sshNetwork
	// waiting counts the started waits for an SSH handshake.
	waiting atomic.Int32

	mu    sync.Mutex
	open  int
	dials map[string]int // by address
}

const tarpitNetwork = "10.66."

// handshakeClock counts the waits for handshakes, which are the only waits of a minute before an agent runs.
type handshakeClock struct {
	*clocktesting.FakeClock
	waiting *atomic.Int32
}

func (c handshakeClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	if d == remote.DefaultHandshakeTimeout {
		c.waiting.Add(1)
	}
	return timer
}

// tarpitConn is a connection to a tarpit.
type tarpitConn struct {
	net.Conn
	close func()
}

func (c tarpitConn) Close() error {
	c.close()
	return c.Conn.Close()
}

func (x *tarpits) dialTarpit(ctx context.Context, network, address string) (net.Conn, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dials[address]++
	if !strings.HasPrefix(address, tarpitNetwork) && x.answers != nil {
		connection, err := x.answers.dialAddress(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return withRemoteAddress(connection, address), nil
	}
	if !strings.HasPrefix(address, tarpitNetwork) {
		connection, err := x.host.dialHost(ctx, network)
		if err != nil {
			return nil, err
		}
		return withRemoteAddress(connection, address), nil
	}
	x.open++
	near, far := net.Pipe()
	return withRemoteAddress(tarpitConn{near, sync.OnceFunc(func() {
		_ = far.Close()
		x.mu.Lock()
		defer x.mu.Unlock()
		x.open--
	})}, address), nil
}

// countDialsTo returns the number of connections to the address of an instance.
func (x *tarpits) countDialsTo(address string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.dials[address+":22"]
}

// addInstances creates and enqueues instances, and returns their addresses.
func (x *tarpits) addInstances(network string, count int, version string) (addresses []string) {
	x.t.Helper()
	for i := range count {
		address := fmt.Sprintf("%s%d.%d", network, i/250, i%250+1)
		instance := &v1alpha1.WindowsInstance{
			ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Generation: 1, UID: types.UID(address),
				Name: nameAt(address)},
			Spec: v1alpha1.WindowsInstanceSpec{Address: address, Username: "Administrator",
				DesiredState: v1alpha1.DesiredStateNode, Source: v1alpha1.Source{ConfigMapKey: address}},
		}
		if err := x.Client.Create(x.t.Context(), instance); err != nil {
			x.t.Fatal(err)
		}
		instance.Status.Version = version
		if err := x.Client.Status().Update(x.t.Context(), instance); err != nil {
			x.t.Fatal(err)
		}
		x.queue.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(instance)})
		addresses = append(addresses, address)
	}
	return addresses
}

func nameAt(address string) string { return "at-" + strings.ReplaceAll(address, ".", "-") }

// awaitCondition waits for a condition while the clock stands still.
func (x *tarpits) awaitCondition(what string, condition func() bool) {
	x.t.Helper()
	for deadline := time.Now().Add(wallClockTimeout); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.t.Fatalf("waited in vain until %s: %d tarpits are waited for", what, x.open)
		}
	}
}

func (x *tarpits) openIs(want int) func() bool {
	return func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.open == want
	}
}

func (x *tarpits) allDialed(addresses []string, times int) func() bool {
	return func() bool {
		for _, address := range addresses {
			if x.countDialsTo(address) < times {
				return false
			}
		}
		return true
	}
}

// newTarpits runs the controller with all its workers.
func newTarpits(t *testing.T) *tarpits {
	t.Helper()
	x := &tarpits{trial: newTrial(t), dials: map[string]int{}}
	x.facts.Platform = "None"
	x.Events = events.NewFakeRecorder(100_000)
	x.Hosts = remote.NewPool(&remote.Dialer{Dial: x.dialTarpit, Clock: handshakeClock{x.clock, &x.waiting},
		Limits: remote.Limits{HelloTimeout: 50 * time.Second, IdleTimeout: 50 * time.Second}})
	x.Jobs = hostjobs.NewRunner(x.Hosts, x.Payload, x.clock)
	options := x.controllerOptions()
	options.Reconciler, options.SkipNameValidation = x.Reconciler, ptr.To(true)
	c, err := controller.NewUnmanaged("instance", options)
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	if err := c.Watch(source.Func(func(ctx context.Context,
		queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		defer close(started)
		x.queue = queue
		return x.enqueueAfterJobs(ctx, queue)
	})); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = x.Jobs.Start(ctx) })
	running.Go(func() {
		if err := c.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		x.Hosts.CloseAll()
		ended := make(chan struct{})
		go func() { running.Wait(); close(ended) }()
		for { // The end of a session may wait for the clock.
			select {
			case <-ended:
				return
			case <-time.After(10 * time.Millisecond):
				x.clock.Step(time.Minute)
			}
		}
	})
	<-started
	return x
}

// Hosts that accept connections and never respond delay the first join of other hosts by at most a minute,
// regardless of the number of such hosts. Nodes in service are not delayed.
func TestFirstContact_SilentHostsDelayNewHostsBriefly(t *testing.T) {
	x := newTarpits(t)
	silent := x.addInstances(tarpitNetwork, maxFirstContacts+44, "")
	x.awaitCondition("as many new hosts are dialed as may be", x.openIs(maxFirstContacts))

	nodes := x.addInstances("10.1.", 5, "1.2.3")
	x.awaitCondition("nodes are dialed at once", x.allDialed(nodes, 1))
	newcomer := x.addInstances("10.2.", 1, "")
	x.awaitCondition("the wait for each has begun", func() bool { return x.waiting.Load() >= maxFirstContacts+5 })
	x.clock.Step(remote.DefaultHandshakeTimeout)
	x.awaitCondition("a new host is dialed after a minute", x.allDialed(newcomer, 1))
	x.awaitCondition("all others have been dialed", x.allDialed(silent, 1))
}

// A new host that has to wait for other hosts reports the wait.
func TestFirstContact_WaitForSlotReported(t *testing.T) {
	x := newTarpits(t)
	x.addInstances(tarpitNetwork, maxFirstContacts, "")
	x.awaitCondition("as many new hosts are dialed as may be", x.openIs(maxFirstContacts))
	address := x.addInstances("10.2.", 1, "")[0]
	instance := &v1alpha1.WindowsInstance{}
	x.awaitCondition("the status says that it waits", func() bool {
		if err := x.Client.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: nameAt(address)}, instance); err != nil {
			t.Fatal(err)
		}
		return instance.Status.Step != nil
	})
	if step := instance.Status.Step; step.Name != "Connect" || !strings.Contains(step.Detail, "waiting for the jobs on other hosts") ||
		instance.Status.Summary != v1alpha1.ReasonInProgress || x.countDialsTo(address) > 0 {
		t.Errorf("the step is %+v, the summary %s; it was dialed %d times", step, instance.Status.Summary, x.countDialsTo(address))
	}
}

// A job that exceeds the limit is ended, and fails only its own instance.
func TestJob_TimeoutFailsOwnInstance(t *testing.T) {
	x := newTrial(t, listedInstance())
	x.facts.Platform = "None"
	dialed := make(chan struct{})
	x.server = func(ctx context.Context) (net.Conn, error) {
		close(dialed)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	x.limits = remote.Limits{DialTimeout: 24 * time.Hour}
	x.dialerClock = x.clock
	x.restartOperator()
	go func() {
		<-dialed
		x.clock.Step(4 * time.Minute)
	}()
	instance, after := x.reconcile()
	condition := expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, v1alpha1.ReasonJobTimedOut)
	if after == 0 || after > maxRetryDelay {
		t.Errorf("the message is %q, the next look is in %s", condition.Message, after)
	}
}

//
func TestJob_EndsWhenMachineIsDeleted(t *testing.T) {
	x := newTrial(t, machineInstance())
	dialed, cut := make(chan struct{}), make(chan struct{})
	x.server = func(ctx context.Context) (net.Conn, error) {
		close(dialed)
		<-ctx.Done()
		close(cut)
		return nil, ctx.Err()
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(machineInstance())}
	if _, err := x.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	<-dialed
	x.changeSpec(x.getInstance(), setUnmanaged(v1alpha1.ReasonMachineDeleting))
	if _, err := x.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	<-cut
	instance, _ := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonMachineDeleting)
	if recorded := x.popEvents(); len(recorded) > 0 || x.countDials() != 1 || x.Hosts.Len() > 0 {
		t.Errorf("%d connections; the events are %q", x.countDials(), recorded)
	}
}

// The taint that keeps Linux pods away must not wait for the end of a job.
func TestNodeDrift_RevertedWhileJobRuns(t *testing.T) {
	x := newTrial(t)
	x.asNode(listedInstance(), "another key")
	dialed, end := make(chan struct{}), make(chan struct{})
	x.server = func(context.Context) (net.Conn, error) {
		close(dialed)
		<-end
		return nil, errors.New("no route")
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(machineInstance())}
	if _, err := x.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	<-dialed
	x.changeNode(func(n *corev1.Node) { n.Spec.Taints = nil })
	if _, err := x.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if !nodes.HasWindowsTaint(x.getNode()) {
		t.Errorf("its taints are %q", formatTaints(x.getNode()))
	}
	close(end)
}
