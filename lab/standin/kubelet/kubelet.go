// Package kubelet stands in for the kubelet on simulated hosts. It reads the real command line and configuration, uses
// client-go's own certificate store and rotation, registers its node and keeps it alive, serves port 10250, and runs
// pods in name only.
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
	// RunPod makes the pod run if it does not yet, and gives its address. fresh is true when it did not run before.
	RunPod(ctx context.Context, pod Pod) (address string, fresh bool, err error)
	// StopPod ends the pod; no error when it does not run.
	StopPod(ctx context.Context, pod Pod) error
}

// Pod holds the runtime's facts about a pod.
type Pod struct {
	UID, Namespace, Name string
	// HostNetwork pods have the node's address and none of their own.
	HostNetwork bool
}

// Options configure the kubelet. All fields but Dial and PodStopTime must be set.
type Options struct {
	Process *node.Process
	Clock   clock.WithTicker
	Dial    kubeconfig.Dialer
	Version string // "v1.36.3"
	Runtime Runtime
	// PodStopTime is how long containers take to end when they are asked to, at most the pod's grace period. Zero: a
	// second. A pod with the annotation of StopSecondsAnnotation takes as long as that says.
	PodStopTime time.Duration
	// Unhealthy makes the health endpoint say that the kubelet does not work, and NotReady makes it say that its Node is
	// not Ready.
	Unhealthy, NotReady bool
}

// StopSecondsAnnotation on a pod is how long its containers take to end, in seconds.
const StopSecondsAnnotation = "lab.windows-machine-config/stop-seconds"

// cniConfigDirectory is where the container runtime looks for the pod network's configuration.
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
	network *gate // open while pods can be run

	logMu sync.Mutex
	log   io.Writer
}

// run ends with ctx and no error, or with the error for which the real kubelet exits.
func (k *kubelet) run(ctx context.Context) (err error) {
	if k.config, err = configure(k.Process.Machine, k.Version, k.Process.Args); err != nil {
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
	server, err := k.listen(ctx, identity, serving, pods)
	if err != nil {
		return err
	}
	if err := k.Process.Machine.ServeLocal(k.config.healthzPort, http.HandlerFunc(k.healthz)); err != nil {
		return fmt.Errorf("failed to start healthz server: %w", err)
	}
	watch := newNodeWatch(k)
	keepNode := func(ctx context.Context) { k.keepNode(ctx, watch) }
	for _, loop := range []func(context.Context){identity.watch, server.run, watch.run, keepNode, k.keepLease, pods.run} {
		group.Go(func() { loop(ctx) })
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); cause != nil && cause != ctx.Err() { //nolint:errorlint // Told apart from a plain stop.
		return cause
	}
	k.infof("Kubelet stops")
	return nil
}

func (k *kubelet) healthz(w http.ResponseWriter, _ *http.Request) {
	if k.Unhealthy {
		http.Error(w, "[-]syncloop failed: reason withheld", http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, "ok")
}

func (k *kubelet) infof(format string, args ...any)  { k.logf('I', format, args...) }
func (k *kubelet) errorf(format string, args ...any) { k.logf('E', format, args...) }

// logf writes a line in the form of klog.
func (k *kubelet) logf(severity rune, format string, args ...any) {
	line := fmt.Sprintf("%c%s    %d kubelet.go:1] %s\n", severity, k.Clock.Now().Format("0102 15:04:05.000000"),
		k.Process.PID, fmt.Sprintf(format, args...))
	k.logMu.Lock()
	defer k.logMu.Unlock()
	_, _ = io.WriteString(k.log, line) // The process has nobody to tell that its log cannot be written.
}

// gate lets callers pass while it is open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
	isOpen bool
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) set(open bool) {
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

// wait gives a channel that is closed when the gate opens.
func (g *gate) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}
