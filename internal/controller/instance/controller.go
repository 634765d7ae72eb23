// Package instance reconciles WindowsInstances. It configures the host as a node of the cluster, maintains the
// node, and restores the host.
package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/sanitize"
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

// ClusterSource returns the current facts of the cluster, or the reason why they cannot be read.
type ClusterSource interface {
	Current() (nodespec.Cluster, error)
}

// Reconciler reconciles one WindowsInstance at a time toward its desired state. Concurrent use on different
// instances is safe.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server instead of the cache, for decisions that must not be stale.
	Live      client.Reader
	Clientset kubernetes.Interface // for the drain library
	Events    events.EventRecorder
	Clock     clock.WithTicker
	Namespace string
	// Version is the operator's version, written to nodes and instances when they are configured.
	Version string
	// Line is the release line of the operator.
	Line    support.ReleaseLine
	Cluster ClusterSource
	Payload *payload.Payload
	// Jobs runs work on the hosts.
	Jobs *hostjobs.Runner
	// Gate decides on the disruption of a node in service.
	Gate disruption.Gate
	// Dial connects to ports of hosts.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// LookUp resolves DNS names of hosts. If nil, changes of their addresses are not detected.
	LookUp func(ctx context.Context, name string) ([]string, error)
	Log    nodespec.LogSettings
	// PauseImage is the image of the container that holds a pod's network; empty for the default of the NodeSpec.
	PauseImage string
	Debug      bool
	// NodeWaitStatusDelay is the duration of a wait for a Node before the status reports the wait; see the constant
	// NodeWaitStatusDelay.
	NodeWaitStatusDelay time.Duration
	// ListWaitTimeout is the time that a reconcile waits for a list from the API server; see the constant
	// ListWaitTimeout.
	ListWaitTimeout time.Duration
	// Jitter returns a number in [0,1) that spreads retries.
	Jitter func() float64

	sessions        scope.Sessions
	progressLimiter status.ProgressLimiter
	instances       queue.SharedRead[[]v1alpha1.WindowsInstance]
	machines        queue.SharedRead[[]machinev1beta1.Machine]
	written         nodes.WrittenNodes
}

// conflictDelay is the delay before a reconcile after a conflict with another client. maxConflicts is the
// maximum number of consecutive conflicts before the API server is read instead of the cache.
const (
	conflictDelay = 200 * time.Millisecond
	maxConflicts  = 3
)

// Reconcile runs the phases of the instance's desired state until a phase must wait or fails. It then writes the
// status, releases the disruption slot if the disruption has ended, and starts at most one job. The end of a job
// triggers the next reconcile.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	instance, session, err := r.readInstance(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.forgetInstance(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read WindowsInstance %s: %w", request.NamespacedName, err)
	}
	s, rooms := scope.New(instance, session, r.Jobs.HostFor(instance), r.Clock), r.newDependencies()
	if running := s.Host.RunningJob(); running != nil {
		return r.reconcileDuringJob(ctx, rooms, s, running)
	}
	next := r.runPhases(ctx, rooms, s)
	if errors.Is(ctx.Err(), context.Canceled) { // the operator stops: an interrupted request is not a failure
		return ctrl.Result{}, nil
	}
	quiet, err := rooms.status.Write(ctx, s)
	if apierrors.IsConflict(err) { // decided on an old version
		return r.requeueOnConflict(request.NamespacedName, session)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.finishReconcile(ctx, rooms, s, next, quiet)
}

// readInstance returns the instance and its session. The instance is read from the cache, unless the last version
// written by this operator is newer. After several conflicts, the instance is read from the API server.
func (r *Reconciler) readInstance(ctx context.Context, name types.NamespacedName) (*v1alpha1.WindowsInstance, *scope.Session, error) {
	instance := &v1alpha1.WindowsInstance{}
	if err := r.Client.Get(ctx, name, instance); err != nil {
		return nil, nil, err
	}
	session := r.sessions.Get(name.Name, instance.UID)
	written := session.Written
	switch {
	case session.Conflicts >= maxConflicts:
		if err := r.Live.Get(ctx, name, instance); err != nil {
			return nil, nil, err
		}
	case written != nil && nodes.IsOlderVersion(instance.ResourceVersion, written.ResourceVersion):
		instance = written.DeepCopy()
	case written != nil:
		session.Written = nil
	}
	return instance, session, nil
}

// requeueOnConflict requests another reconcile after a conflict. The decision and the changes to the session are
// dropped.
func (r *Reconciler) requeueOnConflict(name types.NamespacedName, dropped *scope.Session) (ctrl.Result, error) {
	r.sessions.RecordConflict(name.Name, dropped)
	return ctrl.Result{RequeueAfter: conflictDelay}, nil
}

// runPhases runs the phases, and returns the delay before the next reconcile.
func (r *Reconciler) runPhases(ctx context.Context, rooms *dependencies, s *scope.Scope) ctrl.Result {
	continueAgentCheck(s, r.Clock.Now())
	for _, phase := range rooms.phasesFor(s.Instance) {
		o := phase.run(ctx, s)
		if o == nil {
			continue
		}
		o.Phase = phase.name
		o = rooms.disruptor.ReleaseUnusedSlot(ctx, s, phase.slotPolicy, rooms.rollback.RecordFailure(ctx, s, o))
		s.Result = keepReadyCondition(s, phase, o)
		if o.Outcome != result.Working && o.Outcome != result.Continue {
			s.Session.AddressChanged, s.Session.AgentCheckActive = false, false
		}
		recordAgentCheck(s)
		return rooms.renew.requeueEarlier(s, r.requeueResult(ctx, rooms.events, s))
	}
	s.Session.Attempts, s.Session.WaitName, s.Session.AddressChanged, s.Session.AgentCheckActive = 0, "", false, false
	recordAgentCheck(s)
	metrics.Attempts.Of(metrics.Done).Inc()
	return rooms.renew.requeueEarlier(s, ctrl.Result{})
}

// forgetInstance drops the in-memory state of a deleted instance.
func (r *Reconciler) forgetInstance(name types.NamespacedName) {
	r.sessions.Drop(name.Name)
	r.Jobs.Forget(name)
}

// maxLogMessage is the maximum size of a log message, in bytes. Some messages quote a host, and each attempt logs
// one.
const maxLogMessage = 2 * result.MaxMessageLength

// requeueResult returns the delay before the next reconcile, emits events, and logs the result.
func (r *Reconciler) requeueResult(ctx context.Context, events status.Recorder, s *scope.Scope) ctrl.Result {
	o := s.Result
	switch o.Outcome {
	case result.Done:
		s.Session.Attempts = 0
		return ctrl.Result{RequeueAfter: requeueDelay(o)}
	case result.Working: // the end of the job triggers the next reconcile
		return ctrl.Result{}
	case result.Continue:
		return ctrl.Result{RequeueAfter: minRequeueDelay}
	}
	if o.Reason != s.InitialSummary {
		s.Session.Unreported = o.Reason
	}
	if o.Outcome.NeedsEvent() && o.Reason == s.Session.Unreported { // a wait may become a failure with the same reason
		s.Session.Unreported = ""
		events.Emit(status.StoppedEvent(s.Instance, o))
		if !s.NodeInService && s.Instance.Status.Version != r.Version && s.Instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved {
			events.Emit(status.LegacySetupFailureEvent(s.Instance, o))
		}
	}
	logger := log.FromContext(ctx).WithValues("phase", o.Phase, "reason", o.Reason)
	if !o.Outcome.IsFailure() {
		s.Session.Attempts = 0
		metrics.Attempts.Of(metrics.Waiting).Inc()
		logger.V(1).Info(sanitize.Plain(o.Message, maxLogMessage))
		return ctrl.Result{RequeueAfter: requeueDelay(o)}
	}
	s.Session.Attempts++
	metrics.Attempts.Of(metrics.Failed).Inc()
	metrics.AttemptsFailed.Of(o.Reason).Inc()
	delay := retryDelay(s.Session.Attempts, r.Jitter())
	logger.Info(sanitize.Plain(o.Message, maxLogMessage), "retryAfter", delay.String())
	if o.RequeueAfter > 0 {
		delay = o.RequeueAfter
	}
	s.RetryAt = r.Clock.Now().Add(delay)
	return ctrl.Result{RequeueAfter: delay}
}

// requeueDelay returns the delay before the next reconcile; zero to wait for an event. A time that has already passed
// becomes one second, because controller-runtime does not requeue for a negative delay.
func requeueDelay(o *result.Result) time.Duration {
	if o.RequeueAfter < 0 {
		return time.Second
	}
	return o.RequeueAfter
}
