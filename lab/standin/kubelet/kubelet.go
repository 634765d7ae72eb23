// Package kubelet simulates the kubelet on simulated hosts. It reads the real command line and configuration,
// uses the certificate store and rotation of client-go, registers the node, sends heartbeats, serves port
// 10250, and simulates pods without containers.
package kubelet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/standin/kubeconfig"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// Runtime is the container runtime of the machine.
type Runtime interface {
	// RunPod starts the pod if it is not running and returns the address. fresh is true if the pod was not
	// running before.
	RunPod(ctx context.Context, pod Pod) (address string, fresh bool, err error)
	// StopPod stops the pod; no error if the pod is not running.
	StopPod(ctx context.Context, pod Pod) error
}

// Pod is the data of a pod that the runtime needs.
type Pod struct {
	UID, Namespace, Name string
	// HostNetwork pods share the address of the node.
	HostNetwork bool
}

// Options configure the kubelet. All fields but Dial and PodStopTime must be set.
type Options struct {
	Process *node.Process
	Clock   clock.WithTicker
	Dial    kubeconfig.Dialer
	Version string // "v1.36.3"
	Runtime Runtime
	// PodStopTime is the time that containers take to stop on request, at most the grace period of the pod.
	// Zero: a second. The annotation StopSecondsAnnotation of a pod overrides the time.
	PodStopTime time.Duration
	// Unhealthy makes the health endpoint fail. NotReady makes the kubelet report the Node as not Ready.
	Unhealthy, NotReady bool
}

// StopSecondsAnnotation on a pod is the time in seconds that the containers take to stop.
const StopSecondsAnnotation = "lab.windows-machine-config/stop-seconds"

// cniConfigDirectory is the directory where the container runtime finds the configuration of the pod network.
const cniConfigDirectory = `C:\k\cni\config`

// Run runs the kubelet until ctx is done and returns its exit code.
func Run(ctx context.Context, o Options) int {
	k := &kubelet{Options: o, log: o.Process.Stderr, network: newGate()}
	if k.PodStopTime == 0 {
		k.PodStopTime = time.Second
	}
	if err := k.run(ctx); err != nil {
		k.errorf("command failed: %v", err)
		return 1
	}
	return 0
}

type kubelet struct {
	Options
	config  configuration
	system  host.SystemInfo
	client  kubernetes.Interface
	network *gate // open while pods can run

	logMu sync.Mutex
	log   io.Writer
}

// run returns no error when ctx is done, or the error that makes the real kubelet exit.
func (k *kubelet) run(ctx context.Context) (err error) {
	if k.config, err = loadConfiguration(k.Process.Machine, k.Version, k.Process.Args); err != nil {
		return err
	}
	if k.system, err = k.Process.Host.System.Info(ctx); err != nil {
		return fmt.Errorf("failed to get system information: %w", err)
	}
	k.infof("Kubelet version %s on %s", k.Version, k.config.nodeName)

	ctx, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	defer func() {
		cancel(nil)
		group.Wait()
	}()
	fail := func(err error) { cancel(err) }

	identity, err := k.newIdentity(ctx, fail)
	if err != nil {
		return err
	}
	defer identity.stop()
	serving, err := k.newServing(ctx)
	if err != nil {
		return err
	}
	defer serving.stop()
	pods := newPodTable(k)
	server, err := k.openServer(ctx, identity, serving, pods)
	if err != nil {
		return err
	}
	if err := k.Process.Machine.ServeLocal(k.config.healthzPort, http.HandlerFunc(k.serveHealthz)); err != nil {
		return fmt.Errorf("failed to start healthz server: %w", err)
	}
	watch := newNodeWatch(k)
	keepNode := func(ctx context.Context) { k.keepNode(ctx, watch) }
	for _, loop := range []func(context.Context){identity.watchRotation, server.run, watch.run, keepNode, k.keepLease, pods.run} {
		group.Go(func() { loop(ctx) })
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); cause != nil && cause != ctx.Err() { //nolint:errorlint // Told apart from a plain stop.
		return cause
	}
	k.infof("Kubelet stops")
	return nil
}

func (k *kubelet) serveHealthz(w http.ResponseWriter, _ *http.Request) {
	if k.Unhealthy {
		http.Error(w, "[-]syncloop failed: reason withheld", http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, "ok")
}

func (k *kubelet) infof(format string, args ...any)  { k.logf('I', format, args...) }
func (k *kubelet) errorf(format string, args ...any) { k.logf('E', format, args...) }

// logf writes a line in the format of klog.
func (k *kubelet) logf(severity rune, format string, args ...any) {
	line := fmt.Sprintf("%c%s    %d kubelet.go:1] %s\n", severity, k.Clock.Now().Format("0102 15:04:05.000000"),
		k.Process.PID, fmt.Sprintf(format, args...))
	k.logMu.Lock()
	defer k.logMu.Unlock()
	_, _ = io.WriteString(k.log, line) // There is no output to report a failed log write to.
}

// gate blocks callers while it is closed.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
	isOpen bool
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) setOpen(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open && !g.isOpen:
		close(g.opened)
	case !open && g.isOpen:
		g.opened = make(chan struct{})
	}
	g.isOpen = open
}

// openedChannel returns a channel that is closed when the gate opens.
func (g *gate) openedChannel() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}
