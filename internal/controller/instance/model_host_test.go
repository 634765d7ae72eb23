package instance

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// latch blocks data until it is open.
type latch struct {
	mu     sync.Mutex
	opened chan struct{}
}

func newLatch() *latch {
	l := &latch{opened: make(chan struct{})}
	close(l.opened)
	return l
}

func (l *latch) openedChannel() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened
}

func (l *latch) isOpen() bool {
	select {
	case <-l.openedChannel():
		return true
	default:
		return false
	}
}

func (l *latch) holdData() {
	if l.isOpen() { // a second channel would block writes on the first one forever
		l.mu.Lock()
		defer l.mu.Unlock()
		l.opened = make(chan struct{})
	}
}

func (l *latch) releaseData() {
	if !l.isOpen() {
		close(l.openedChannel())
	}
}

type latchedConn struct {
	net.Conn
	latch  *latch
	once   sync.Once
	closed chan struct{}
}

func (c *latchedConn) Write(p []byte) (int, error) {
	select {
	case <-c.latch.openedChannel():
		return c.Conn.Write(p)
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *latchedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func newModel(t *testing.T) *model {
	t.Helper()
	m := &model{latch: newLatch()}
	m.trial, m.host, m.gate = hostToJoin(t, "None", func(o *fake.Options) {
		o.Clock, _ = o.ProgramClock.(clock.WithTicker)
		o.RebootDuration = 20 * time.Second
		programs := o.Programs
		o.Programs = func(content []byte) (fake.Program, error) {
			program, err := programs(content)
			if err != nil || string(content) != "wicd.exe" {
				return program, err
			}
			return func(ctx context.Context, p *fake.Process) int {
				defer m.trackCommand(p)()
				return program(ctx, p)
			}, nil
		}
	})
	api, ok := m.Client.(client.WithWatch)
	if !ok {
		t.Fatalf("it is a %T", m.Client)
	}
	m.api, m.Live = api, api
	m.Client = interceptor.NewClient(api, interceptor.Funcs{
		Get: m.getCached,
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return m.write(func() error { return c.Patch(ctx, object, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, of string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			return m.write(func() error { return c.SubResource(of).Patch(ctx, object, patch, options...) })
		},
	})
	m.allowEvictions(nil)
	m.host.machine.OnOperation(m.checkDisruption)
	serve := m.server
	m.server = func(ctx context.Context) (net.Conn, error) {
		if m.off.Load() {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		conn, err := serve(ctx)
		if err != nil {
			return nil, err
		}
		return &latchedConn{Conn: conn, latch: m.latch, closed: make(chan struct{})}, nil
	}
	t.Cleanup(m.latch.releaseData)
	m.replaceOperator()
	return m
}

func (m *model) getCached(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	instance, isInstance := object.(*v1alpha1.WindowsInstance)
	if isInstance && m.cached != nil {
		m.cached.DeepCopyInto(instance)
		return nil
	}
	return c.Get(ctx, key, object, options...)
}

// write sends a write of a reconcile. The API server may refuse the write, or the response may be lost.
func (m *model) write(send func() error) error {
	if m.refuse > 0 {
		m.refuse--
		return m.with
	}
	err := send()
	if err == nil && m.lost > 0 {
		m.lost--
		return apierrors.NewTimeoutError("the connection was lost", 0)
	}
	return err
}

func (m *model) trialNode() *corev1.Node {
	node := &corev1.Node{}
	if m.api.Get(context.Background(), client.ObjectKey{Name: machine}, node) != nil {
		return nil
	}
	return node
}

func isReadyNode(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (m *model) listPods() []corev1.Pod {
	list, err := m.clientset.CoreV1().Pods("shop").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		m.addViolation("list pods: %v", err)
		return nil
	}
	return list.Items
}

// evictAll deletes the pods, as the garbage collector does after the deletion of their Node.
func (m *model) evictAll() {
	for _, pod := range m.listPods() {
		if err := m.clientset.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), pod.Namespace, pod.Name); err != nil {
			m.t.Fatal(err)
		}
	}
}

// simulateHost simulates the host independently of the operator: the kubelet registers the Node when started, and
// reports.
func (m *model) simulateHost() {
	process := m.host.servicePID(nodespec.ServiceKubelet)
	start := fmt.Sprint(m.host.machine.BootID(), process)
	node := m.trialNode()
	if process == 0 {
		if node != nil && isReadyNode(node) {
			m.reportReady(corev1.ConditionUnknown)
		}
		return
	}
	switch {
	case node == nil && start != m.kubelet:
		node := m.newRegisteredNode()
		m.createdObjects++
		node.UID = types.UID(fmt.Sprintf("node-%d", m.createdObjects))
		if err := m.api.Create(m.t.Context(), node); err != nil {
			m.t.Fatal(err)
		}
	case node != nil && (!isReadyNode(node) || start != m.kubelet || m.clock.Since(m.reported) > time.Minute):
		m.reportReady(corev1.ConditionTrue)
		m.reported = m.clock.Now()
	}
	m.kubelet = start
	if node != nil && isReadyNode(node) && !node.Spec.Unschedulable && !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == v1alpha1.TaintNotReady
	}) && len(m.listPods()) == 0 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{NodeName: machine}}
		if err := m.clientset.Tracker().Add(pod); err != nil {
			m.t.Fatal(err)
		}
	}
}
