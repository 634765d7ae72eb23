// Package instance moves each WindowsInstance: it turns the host into a node of the cluster, keeps it one, and gives it
// back.
package instance

import (
	"context"
	"fmt"
	"net"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/coalesce"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/places"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/controller/metric"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/text"
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

// ClusterSource returns the present facts of the cluster, or why they cannot be read.
type ClusterSource interface {
	Current() (nodespec.Cluster, error)
}

// Reconciler moves one WindowsInstance at a time toward its desired state. It is safe for concurrent use on different
// instances.
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
	Hosts   *remote.Pool
	// Gate is asked before a node in service is disturbed.
	Gate disruption.Gate
	// Dial tries ports of hosts.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// LookUp resolves DNS names of hosts; nil means that changes of their addresses are not noticed.
	LookUp func(ctx context.Context, name string) ([]string, error)
	Log    nodespec.LogSettings
	// PauseImage is the image of the container that holds a pod's network; empty for that of the NodeSpec.
	PauseImage string
	Debug      bool
	// Jitter spreads retries: it returns a number in [0,1).
	Jitter func() float64

	sessions  scope.Sessions
	places    places.Places
	transfers places.Transfers
	pace      status.Pace
	instances coalesce.Reads[[]v1alpha1.WindowsInstance]
	machines  coalesce.Reads[[]machinev1beta1.Machine]
	// nodeChanges tell passes of changes of Nodes; nil where nothing is watched.
	nodeChanges *nodes.Changes
}

// Reconcile runs the phases of the instance's desired state until one must wait or fails, and writes the status.
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
	s, rooms := scope.New(instance, r.session(instance)), r.rooms()
	if !r.takePlace(s) {
		return ctrl.Result{RequeueAfter: placeRecheck}, r.tellNoPlace(ctx, rooms, s)
	}
	defer r.places.Return(instance.Name)
	begin := r.Clock.Now()
	pass, end := r.limited(ctx)
	defer end()
	defer func() {
		if s.Connection != nil {
			r.Hosts.Release(s.Connection)
		}
		if !s.Finished {
			return // a phase has panicked, or the operator ends: nothing is known
		}
		s.Session.Slow = isSlow(s, r.Clock.Since(begin)-rooms.nodes.Waited())
		if statusErr := rooms.status.Finish(ctx, s); statusErr != nil && err == nil {
			result, err = ctrl.Result{}, statusErr
		}
	}()

	for _, phase := range rooms.phases(instance) {
		if r.superseded(ctx, instance) {
			return ctrl.Result{}, r.standBack(ctx, rooms, s, instance)
		}
		o := r.timed(pass, phase, s)
		if o == nil {
			continue
		}
		if ctx.Err() != nil {
			// The operator ends. What was cut off by that is no failure, and the next operator looks for itself.
			return ctrl.Result{}, nil
		}
		if r.superseded(ctx, instance) {
			return ctrl.Result{}, r.standBack(ctx, rooms, s, instance)
		}
		if pass.Err() != nil {
			rooms.link.Close(s)
			o = tookTooLong(o)
		}
		o.Phase = phase.name
		o = rooms.turn.GiveUp(ctx, s, phase.turn, rooms.rollback.Count(ctx, s, o))
		s.Obstacle, s.Finished = aside(s, phase, o), true
		recordAgentCheck(s)
		return rooms.renew.lookAgain(s, r.whenBlocked(ctx, rooms.events, s)), nil
	}
	s.Session.Attempts, s.Session.Waiting, s.Session.Order, s.Finished = 0, "", 0, true
	recordAgentCheck(s)
	metric.Attempts.Of(metric.Done).Inc()
	return rooms.renew.lookAgain(s, ctrl.Result{}), nil
}

// session returns the session of an instance. It closes the connection of a deleted instance of the same name.
func (r *Reconciler) session(instance *v1alpha1.WindowsInstance) *scope.Session {
	session, remade := r.sessions.Of(instance.Name, instance.UID)
	if remade {
		r.Hosts.Close(instance.Name)
	}
	return session
}

// forget drops what is held in memory for an instance that is gone.
func (r *Reconciler) forget(name string) {
	r.sessions.Drop(name)
	r.places.Return(name)
	r.Hosts.Close(name)
}

// maxLogMessage limits a message in the log, in bytes. Some messages quote a host, and each attempt logs one.
const maxLogMessage = 2 * obstacle.LongestMessage

// whenBlocked says when to look at the instance again, and logs what an administrator would want to find in the log.
func (r *Reconciler) whenBlocked(ctx context.Context, events event.Recorder, s *scope.Scope) ctrl.Result {
	o := s.Obstacle
	if o.Outcome == obstacle.NothingToDo {
		s.Session.Attempts = 0
		return ctrl.Result{RequeueAfter: untilNextLook(o)}
	}
	if o.Reason != s.Before {
		s.Session.Unreported = o.Reason
	}
	if o.Outcome.IsNews() && o.Reason == s.Session.Unreported { // a wait may turn into a failure with the same reason
		s.Session.Unreported = ""
		events.Emit(event.Stopped(s.Instance, o))
		if !s.Works && s.Instance.Status.Version != r.Version && s.Instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved {
			events.Emit(event.LegacySetupFailure(s.Instance, o))
		}
	}
	logger := log.FromContext(ctx).WithValues("phase", o.Phase, "reason", o.Reason)
	if !o.Outcome.IsFailure() {
		s.Session.Attempts = 0
		metric.Attempts.Of(metric.Waiting).Inc()
		logger.V(1).Info(text.Plain(o.Message, maxLogMessage))
		return ctrl.Result{RequeueAfter: untilNextLook(o)}
	}
	s.Session.Attempts++
	if !s.MidChange() && !o.KeepsTurn {
		s.Session.Order = 0
	}
	metric.Attempts.Of(metric.Failed).Inc()
	metric.AttemptsFailed.Of(o.Reason).Inc()
	delay := retryDelay(s.Session.Attempts, r.Jitter())
	logger.Info(text.Plain(o.Message, maxLogMessage), "retryAfter", delay.String())
	if o.After > 0 {
		delay = o.After
	}
	s.RetryAt = r.Clock.Now().Add(delay)
	return ctrl.Result{RequeueAfter: delay}
}

// untilNextLook returns the time after which the instance is reconciled again; zero if an event wakes it. A time that has
// passed since it was computed is now: controller-runtime would not requeue.
func untilNextLook(o *obstacle.Obstacle) time.Duration {
	if o.After < 0 {
		return time.Second
	}
	return o.After
}
