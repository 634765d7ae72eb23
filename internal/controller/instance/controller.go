// Package instance moves each WindowsInstance: it turns the host into a node of the cluster, keeps it one, and gives it
// back.
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
	"github.com/windows-machine-config/wmco/internal/controller/metric"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
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
	// Jobs works on the hosts.
	Jobs *hostjobs.Runner
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
	// Quiet is how long a wait for a Node lasts before the status shows it; see QuietWait.
	Quiet time.Duration
	// Patience is how long a reconcile waits for a list of the API server; see ListPatience.
	Patience time.Duration
	// Jitter spreads retries: it returns a number in [0,1).
	Jitter func() float64

	sessions  scope.Sessions
	pace      status.Pace
	instances queue.SharedRead[[]v1alpha1.WindowsInstance]
	machines  queue.SharedRead[[]machinev1beta1.Machine]
	written   nodes.Written
}

// conflictDelay is how soon an instance is reconciled again that another client has changed meanwhile, and mostConflicts how often
// in a row the cache is read first.
const (
	conflictDelay = 200 * time.Millisecond
	mostConflicts = 3
)

// Reconcile runs the phases of the instance's desired state until one must wait or fails. It writes the status, leaves the gate if
// the disruption of the node has ended, and begins at most one job, in this order. A job's end triggers the next reconcile.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	instance, session, err := r.read(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read WindowsInstance %s: %w", request.NamespacedName, err)
	}
	s, rooms := scope.New(instance, session, r.Jobs.Of(instance), r.Clock), r.rooms()
	if running := s.Host.Running(); running != nil {
		return r.follow(ctx, rooms, s, running)
	}
	next := r.runPhases(ctx, rooms, s)
	if errors.Is(ctx.Err(), context.Canceled) { // the operator ends: what was cut off by that is no failure
		return ctrl.Result{}, nil
	}
	quiet, err := rooms.status.Write(ctx, s)
	if apierrors.IsConflict(err) { // decided on an older version: decide again
		return r.decideAgain(request.NamespacedName, session)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.commit(ctx, rooms, s, next, quiet)
}

// read returns the instance and its session: from the cache, or as this operator has written it last if that is newer. After several
// conflicts it reads the API server.
func (r *Reconciler) read(ctx context.Context, name types.NamespacedName) (*v1alpha1.WindowsInstance, *scope.Session, error) {
	instance := &v1alpha1.WindowsInstance{}
	if err := r.Client.Get(ctx, name, instance); err != nil {
		return nil, nil, err
	}
	session := r.sessions.Of(name.Name, instance.UID)
	written := session.Written
	switch {
	case session.Conflicts >= mostConflicts:
		if err := r.Live.Get(ctx, name, instance); err != nil {
			return nil, nil, err
		}
	case written != nil && nodes.Older(instance.ResourceVersion, written.ResourceVersion):
		instance = written.DeepCopy()
	case written != nil:
		session.Written = nil
	}
	return instance, session, nil
}

// decideAgain requests another reconcile after a write that was refused. What was decided, and what was noted of it, is dropped.
func (r *Reconciler) decideAgain(name types.NamespacedName, dropped *scope.Session) (ctrl.Result, error) {
	r.sessions.Conflict(name.Name, dropped)
	return ctrl.Result{RequeueAfter: conflictDelay}, nil
}

// runPhases runs the phases, and returns when the instance is to be looked at again.
func (r *Reconciler) runPhases(ctx context.Context, rooms *rooms, s *scope.Scope) ctrl.Result {
	goOnWithAgentCheck(s, r.Clock.Now())
	for _, phase := range rooms.phases(s.Instance) {
		o := phase.run(ctx, s)
		if o == nil {
			continue
		}
		o.Phase = phase.name
		o = rooms.turn.GiveUp(ctx, s, phase.turn, rooms.rollback.Count(ctx, s, o))
		s.Result = aside(s, phase, o)
		if o.Outcome != result.Working && o.Outcome != result.Again {
			s.Session.Moved, s.Session.Checking = false, false
		}
		recordAgentCheck(s)
		return rooms.renew.lookAgain(s, r.whenBlocked(ctx, rooms.events, s))
	}
	s.Session.Attempts, s.Session.Waiting, s.Session.Moved, s.Session.Checking = 0, "", false, false
	recordAgentCheck(s)
	metric.Attempts.Of(metric.Done).Inc()
	return rooms.renew.lookAgain(s, ctrl.Result{})
}

// forget drops what is held in memory for an instance that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.sessions.Drop(name.Name)
	r.Jobs.Forget(name)
}

// maxLogMessage limits a message in the log, in bytes. Some messages quote a host, and each attempt logs one.
const maxLogMessage = 2 * result.LongestMessage

// whenBlocked says when to look at the instance again, and logs what an administrator would want to find in the log.
func (r *Reconciler) whenBlocked(ctx context.Context, events status.Recorder, s *scope.Scope) ctrl.Result {
	o := s.Result
	switch o.Outcome {
	case result.NothingToDo:
		s.Session.Attempts = 0
		return ctrl.Result{RequeueAfter: untilNextLook(o)}
	case result.Working: // its end triggers the next reconcile
		return ctrl.Result{}
	case result.Again:
		return ctrl.Result{RequeueAfter: minimalWait}
	}
	if o.Reason != s.Before {
		s.Session.Unreported = o.Reason
	}
	if o.Outcome.IsNews() && o.Reason == s.Session.Unreported { // a wait may turn into a failure with the same reason
		s.Session.Unreported = ""
		events.Emit(status.StoppedEvent(s.Instance, o))
		if !s.Works && s.Instance.Status.Version != r.Version && s.Instance.Spec.DesiredState != v1alpha1.DesiredStateRemoved {
			events.Emit(status.LegacySetupFailureEvent(s.Instance, o))
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
func untilNextLook(o *result.Result) time.Duration {
	if o.After < 0 {
		return time.Second
	}
	return o.After
}
