package instance

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// standstill is a trial in which the first job of a kind blocks until it is released.
type standstill struct {
	*trial
	host *agentHost
	kind hostjobs.Kind
	// verb is the agent command that blocks; "" for a job that blocks before it sends anything.
	verb     string
	instance *v1alpha1.WindowsInstance
	jobs     *hostjobs.Runner

	verbs int // the agent commands until then

	reach, resume    func()
	reached, resumed chan struct{}
	sent             atomic.Int64 // bytes sent by the operator to the host
}

// blockJob makes the first job of a kind block.
func (x *trial) blockJob(h *agentHost, kind hostjobs.Kind, verb string) *standstill {
	s := &standstill{trial: x, host: h, kind: kind, verb: verb, instance: x.getInstance(), jobs: x.Jobs,
		reached: make(chan struct{}), resumed: make(chan struct{})}
	s.reach, s.resume = sync.OnceFunc(func() { close(s.reached) }), sync.OnceFunc(func() { close(s.resumed) })
	x.t.Cleanup(s.resume)
	serve := x.server
	x.server = func(ctx context.Context) (net.Conn, error) {
		conn, err := serve(ctx)
		if err != nil {
			return nil, err
		}
		return &blockedConn{Conn: conn, s: s, closed: make(chan struct{})}, nil
	}
	h.machine.OnOperation(func(o fake.Operation) error {
		if s.verb != "" && o.Process.Service == "" && slices.Equal(o.Process.Args[:min(1, len(o.Process.Args))], []string{s.verb}) && s.shouldBlock() {
			s.reach()
			<-s.resumed
		}
		return nil
	})
	s.blockAtAPI()
	return s
}

// shouldBlock reports whether a job of the kind is running and must block.
func (s *standstill) shouldBlock() bool {
	select {
	case <-s.resumed:
		return false
	default:
	}
	running := s.jobs.HostFor(s.instance).RunningJob()
	return running != nil && running.Key.Kind == s.kind
}

// blockAtAPI blocks evictions, certificate signing and name resolution.
func (s *standstill) blockAtAPI() {
	s.clientset.PrependReactor("update", "certificatesigningrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if s.kind != hostjobs.KindSign || !s.shouldBlock() {
			return false, nil, nil
		}
		s.reach()
		return true, action.(clienttesting.UpdateAction).GetObject(), nil
	})
	s.clientset.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" || s.kind != hostjobs.KindDrain || !s.shouldBlock() {
			return false, nil, nil
		}
		s.reach()
		return true, nil, nil
	})
	lookup := s.LookUp
	s.LookUp = func(ctx context.Context, name string) ([]string, error) {
		if s.kind == hostjobs.KindResolve && s.shouldBlock() {
			s.reach()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return lookup(ctx, name)
	}
}

// blockedConn is a connection to a host that accepts no more data.
type blockedConn struct {
	net.Conn
	s      *standstill
	once   sync.Once
	closed chan struct{}
}

func (c *blockedConn) Write(p []byte) (int, error) {
	if c.s.verb == "" && c.s.shouldBlock() {
		c.s.reach()
		select {
		case <-c.closed:
			return 0, net.ErrClosed
		case <-c.s.resumed:
		}
	}
	n, err := c.Conn.Write(p)
	c.s.sent.Add(int64(n))
	return n, err
}

func (c *blockedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// runUntilBlocked reconciles the instance until the job blocks.
func (s *standstill) runUntilBlocked() {
	s.t.Helper()
	s.driveUntil("a job of kind "+string(s.kind), func() bool {
		select {
		case <-s.reached:
			return true
		default:
			return false
		}
	})
	s.verbs = len(s.host.agentCommands())
}

// maxReconcileSteps is the maximum number of reconciles while waiting for a condition.
const maxReconcileSteps = 300

// driveUntil reconciles the instance, runs its jobs and advances the clock, until a condition holds.
func (s *standstill) driveUntil(what string, holds func() bool) {
	s.t.Helper()
	for range maxReconcileSteps {
		start := s.Jobs.CountStarted()
		after := s.reconcileOnce()
		for s.Jobs.CountRunning() > 0 && !holds() {
			time.Sleep(time.Millisecond)
		}
		if holds() {
			return
		}
		s.runsKubelet()
		if s.Jobs.CountStarted() == start {
			s.clock.Step(min(max(after, time.Second), time.Minute))
		}
	}
	s.t.Fatalf("%s does not come: %+v", what, s.instanceOrNil())
}

func (s *standstill) reconcileOnce() time.Duration {
	s.t.Helper()
	result, err := s.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.instance)})
	if err != nil {
		s.t.Fatal(err)
	}
	return result.RequeueAfter
}

// runsKubelet makes the kubelet register its Node, and report.
func (s *standstill) runsKubelet() {
	s.t.Helper()
	instance := s.instanceOrNil()
	switch {
	case instance == nil:
	case instance.Status.Summary == v1alpha1.ReasonNodeNotRegistered && s.getNode() == nil:
		if err := s.Client.Create(s.t.Context(), s.newRegisteredNode()); err != nil {
			s.t.Fatal(err)
		}
	case instance.Status.Summary == v1alpha1.ReasonNodeNotReady:
		s.reportReady(corev1.ConditionTrue)
	}
}

// instanceOrNil returns the stored instance; nil if it no longer exists.
func (s *standstill) instanceOrNil() *v1alpha1.WindowsInstance {
	s.t.Helper()
	instance := &v1alpha1.WindowsInstance{}
	if err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(s.instance), instance); err != nil {
		if client.IgnoreNotFound(err) != nil {
			s.t.Fatal(err)
		}
		return nil
	}
	return instance
}

// countWrites returns the number of writes by jobs to the API server.
func (s *standstill) countWrites() (n int) {
	for _, action := range s.clientset.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			n++
		}
	}
	return n
}

// awaitEnd waits for a condition that does not depend on the clock of the trial.
func (s *standstill) awaitEnd(what string, ended func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(wallClockTimeout); !ended(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// endClock reports when the runner begins to wait for the end of jobs.
type endClock struct {
	clock.WithTicker
	waits chan struct{}
}

// shutdownTimeout is the time that jobs have to end when the operator stops.
const shutdownTimeout = 10 * time.Second

func (c endClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.WithTicker.NewTimer(d)
	if d == shutdownTimeout {
		select {
		case c.waits <- struct{}{}:
		default:
		}
	}
	return timer
}

// blockedJob is a job of a kind, and the scenario of a host with such a job.
type blockedJob struct {
	kind hostjobs.Kind
	verb string // of the agent; "" for none
	// changes is true for a job that changes the host. On a listed host, the job continues after the instance is
	// deleted.
	changes bool
	// setUp returns a trial that leads to a job of the kind.
	setUp func(t *testing.T) (*trial, *agentHost)
	// isDone reports whether the work of the job is complete.
	isDone  func(*standstill) bool
	timeout time.Duration
}

func (j blockedJob) run(t *testing.T, verb string, test func(*testing.T, *standstill)) {
	t.Helper()
	where := "before it sends anything"
	if verb != "" {
		where = "while the agent works"
	}
	t.Run(string(j.kind)+" "+where, func(t *testing.T) {
		x, h := j.setUp(t)
		test(t, x.blockJob(h, j.kind, verb))
	})
}
