// Package instance moves each WindowsInstance: it makes the host a node of the cluster, keeps it one, and gives it back.
package instance

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=certificatesigningrequests/approval,verbs=update
// +kubebuilder:rbac:groups=certificates.k8s.io,resources=signers,resourceNames=kubernetes.io/kube-apiserver-client-kubelet;kubernetes.io/kube-apiserver-client,verbs=approve
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=cloud-private-key,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=system,resources=events,verbs=create;patch

// ClusterSource gives the present facts of the cluster, or why they cannot be read.
type ClusterSource interface {
	Current() (nodespec.Cluster, error)
}

// Reconciler moves one WindowsInstance at a time toward its desired state. It is safe for concurrent use on different instances.
type Reconciler struct {
	Client client.Client
	// Live reads the API server and not the cache, for decisions that must not be stale.
	Live      client.Reader
	Clientset kubernetes.Interface // for the drain library
	Events    events.EventRecorder
	Clock     clock.WithTicker
	Namespace string
	// Version is the operator's version, written to nodes and instances when they are configured.
	Version string
	// Line is the line of releases that the operator is of.
	Line    support.ReleaseLine
	Cluster ClusterSource
	Payload *payload.Payload
	Packer  *payload.Packer
	Hosts   *remote.Pool
	// Gate is asked before a node in service is disturbed.
	Gate disruption.Gate
	// Dial tries ports of hosts.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Log  nodespec.LogSettings
	// PauseImage is the image of the container that holds a pod's network; empty for that of the NodeSpec.
	PauseImage string
	Debug      bool
	// Jitter spreads retries: it returns a number in [0,1).
	Jitter func() float64

	sessions sessions
}

// phase is one stage of an instance's way. It returns nil when it has nothing left to do, so that the next one may go on.
type phase struct {
	// name is for people: in events and in the log.
	name string
	run  func(context.Context, *scope) *obstacle
	// keepsReady reports whether an obstacle of the phase leaves the Ready condition of a working node as it is; nil for no.
	keepsReady func(*scope) bool
	// asksHost is true when an obstacle of the phase says that the host did not answer.
	asksHost bool
	// letsOthersGoFirst is true when an instance that is being removed gives up its turn at an obstacle of the phase.
	letsOthersGoFirst bool
}

// Values of phase.keepsReady.
func always(*scope) bool           { return true }
func whenNodeWorks(s *scope) bool  { return s.works }
func whenKeyDiffers(s *scope) bool { return s.keyDiffers }

// Reconcile runs the phases that the instance's desired state needs, until one must wait or fails, and writes the status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	instance := &v1alpha1.WindowsInstance{}
	// Not from the cache: the status is this controller's memory, and must hold what the last reconcile wrote.
	err = r.Live.Get(ctx, request.NamespacedName, instance)
	if apierrors.IsNotFound(err) {
		r.forget(request.Name)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read WindowsInstance %s: %w", request.NamespacedName, err)
	}
	s := r.newScope(instance)
	defer func() {
		if s.connection != nil {
			r.Hosts.Release(s.connection)
		}
		if !s.finished {
			return // a phase has panicked, or the operator ends: nothing is known
		}
		if statusErr := s.writeStatus(ctx); statusErr != nil && err == nil {
			result, err = ctrl.Result{}, statusErr
		}
	}()

	for _, phase := range r.phases(instance) {
		if r.superseded(ctx, instance) {
			return ctrl.Result{}, r.standBack(ctx, s, instance)
		}
		obstacle := phase.run(ctx, s)
		if obstacle == nil {
			continue
		}
		if ctx.Err() != nil {
			// The operator ends. What was cut off by that is no failure, and the next operator looks for itself.
			return ctrl.Result{}, nil
		}
		if r.superseded(ctx, instance) {
			return ctrl.Result{}, r.standBack(ctx, s, instance)
		}
		obstacle.phase = phase.name
		obstacle = s.giveUpTurn(ctx, phase, r.countFailure(ctx, s, obstacle))
		s.obstacle, s.finished = s.aside(phase, obstacle), true
		return s.lookAgain(r.whenBlocked(ctx, s)), nil
	}
	s.session.attempts, s.session.waiting, s.finished = 0, "", true
	return s.lookAgain(ctrl.Result{}), nil
}

// forget drops what is held in memory for an instance that is gone.
func (r *Reconciler) forget(name string) {
	r.sessions.drop(name)
	r.Hosts.Close(name)
}

// phases are the table of contents of this package.
func (r *Reconciler) phases(instance *v1alpha1.WindowsInstance) []phase {
	switch {
	case instance.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged:
		return []phase{{name: "unmanaged", run: r.leaveAlone}}
	case instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved && instance.Spec.Source.Machine != nil:
		return []phase{
			{name: "disconnect", run: r.disconnect},
			{name: "remember", run: r.rememberNode},
			{name: "forgetNode", run: r.forgetNode},
			{name: "lateNode", run: r.awaitLateNode},
			{name: "forgetKubelet", run: r.forgetKubelet},
			{name: "deleteInstance", run: r.deleteInstance},
		}
	case instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved:
		return []phase{
			{name: "pause", run: r.pause, letsOthersGoFirst: true},
			{name: "settings", run: r.readSettings},
			{name: "remember", run: r.rememberNode},
			{name: "handOver", run: r.handOver},
			{name: "key", run: r.readKeyForRemoval, letsOthersGoFirst: true},
			{name: "drain", run: r.drain},
			{name: "reachForRemoval", run: r.reachForRemoval},
			{name: "giveBack", run: r.giveBack},
			{name: "forgetNode", run: r.forgetNode},
			{name: "forgetKubelet", run: r.forgetKubelet},
			{name: "deleteInstance", run: r.deleteInstance},
		}
	}
	return []phase{
		{name: "entry", run: r.checkEntry, keepsReady: always},
		{name: "pause", run: r.pause, keepsReady: always},
		{name: "key", run: r.readKey, keepsReady: always},
		{name: "cluster", run: r.readCluster, keepsReady: always},
		{name: "settings", run: r.readSettings},
		{name: "remember", run: r.rememberNode},
		{name: "adoptMachine", run: r.adoptMachineNode},
		{name: "renew", run: r.renewCertificates},
		{name: "idle", run: r.stopIfNothingToDo},
		{name: "failed", run: r.remindFailure},
		{name: "replacement", run: r.awaitReplacement},
		{name: "eligible", run: r.checkEligibility, keepsReady: whenNodeWorks},
		{name: "turn", run: r.awaitTurn},
		{name: "reach", run: r.reach, keepsReady: whenKeyDiffers, asksHost: true},
		{name: "adoptKey", run: r.adoptKey},
		{name: "inspect", run: r.inspect, asksHost: true},
		{name: "rollBack", run: r.rollBack},
		{name: "reboot", run: r.rebootRequested},
		{name: "support", run: r.checkSupport},
		{name: "preflight", run: r.checkWayToAPIServer},
		{name: "claim", run: r.claimName},
		{name: "adopt", run: r.adoptNode},
		{name: "install", run: r.install},
		{name: "join", run: r.join},
		{name: "network", run: r.setUpNetwork},
		{name: "verify", run: r.verify},
		{name: "release", run: r.releaseNode},
	}
}

// whenBlocked says when to look at the instance again, and logs what an administrator would want to find in the log.
func (r *Reconciler) whenBlocked(ctx context.Context, s *scope) ctrl.Result {
	o := s.obstacle
	if o.outcome == nothingToDo {
		s.session.attempts = 0
		return ctrl.Result{RequeueAfter: o.after}
	}
	if o.outcome.isNews() && o.reason != s.before {
		s.emit(stopped(s.instance, o))
	}
	logger := log.FromContext(ctx).WithValues("phase", o.phase, "reason", o.reason)
	if !o.outcome.isFailure() {
		s.session.attempts = 0
		logger.V(1).Info(o.message)
		return ctrl.Result{RequeueAfter: o.after}
	}
	s.session.attempts++
	delay := retryDelay(s.session.attempts, r.Jitter())
	logger.Info(o.message, "retryAfter", delay.String())
	if o.after > 0 {
		delay = o.after
	}
	s.retryAt = r.Clock.Now().Add(delay)
	return ctrl.Result{RequeueAfter: delay}
}

// Retry delays after a failure: they double from the first to the last, so that a mended host is taken up within a minute and a
// dead one costs one attempt a minute.
const (
	firstRetryDelay = 2 * time.Second
	lastRetryDelay  = time.Minute
)

// retryDelay is the wait before the given attempt (from 1), spread by a fifth.
func retryDelay(attempt int, jitter float64) time.Duration {
	delay := firstRetryDelay
	for i := 1; i < attempt && delay < lastRetryDelay; i++ {
		delay *= 2
	}
	delay = min(delay, lastRetryDelay)
	return delay - time.Duration(float64(delay)*0.2*jitter)
}

// pause stops when a user has paused the instance.
func (r *Reconciler) pause(_ context.Context, s *scope) *obstacle {
	if !s.instance.Spec.Paused {
		return nil
	}
	return &obstacle{
		condition: v1alpha1.ConditionReady, reason: v1alpha1.ReasonPaused, outcome: wait,
		message: "The instance is paused: the operator neither touches the host nor watches over its node.",
		next:    "Set spec.paused to false to let the operator go on.",
	}
}

func isReady(node *corev1.Node) bool {
	ready := readyCondition(node)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// readyCondition is what the kubelet reports of its Node; nil before it has.
func readyCondition(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// hostError wraps an error of the API with what was tried for which host.
func hostError(what string, instance *v1alpha1.WindowsInstance, err error) error {
	return fmt.Errorf("%s for host %s: %w", what, instance.Spec.Address, err)
}
