// Package clusterconfig maintains the facts of the cluster that every host depends on. The facts are read when an
// object changes, and shared with all instances.
package clusterconfig

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures;clusterversions;networks;proxies;images,verbs=get;list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=imagedigestmirrorsets;imagetagmirrorsets;clusterimagepolicies;imagepolicies,verbs=list;watch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=imagecontentsourcepolicies;machineconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=networks,verbs=get;list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools;machineconfigs;controllerconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=kubeletconfigs;containerruntimeconfigs,verbs=list;watch
// +kubebuilder:rbac:groups="",namespace=system,resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=windows-machine-config-operator-tls,verbs=get;list;watch

// The pull secret and the authorities of the API server's clients are in foreign namespaces, where a bundle for OLM
// cannot install a Role.
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=extension-apiserver-authentication,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=pull-secret,verbs=get;list;watch

// rereadInterval is the interval between reads without an event: a watch may miss a change, and a report may have
// been reverted.
const rereadInterval = 10 * time.Minute

// errNotRead is the state before the first read.
var errNotRead = errors.New("it has not been read yet")

// Source reads the cluster and stores the facts.
type Source struct {
	// Report reports whether the operator can serve the cluster; nil disables reports.
	Report *Reporter

	reader    client.Reader
	namespace string
	clock     clock.PassiveClock
	good      goodRead
	absences  absences
	listeners []chan event.GenericEvent

	mu    sync.RWMutex
	facts nodespec.Cluster
	err   error
}

// goodRead is the last read of the cluster that the nodes follow.
type goodRead struct {
	facts   nodespec.Cluster
	notices []cluster.Notice
}

// NewSource returns a source that reads the API server directly.
func NewSource(reader client.Reader, namespace string) *Source {
	return &Source{reader: reader, namespace: namespace, clock: clock.RealClock{}, err: errNotRead}
}

// Changes returns a channel that receives an event after the facts have changed. Several changes may cause one
// event. Changes must be called before the controller starts.
func (s *Source) Changes() <-chan event.GenericEvent {
	changes := make(chan event.GenericEvent, 1)
	s.listeners = append(s.listeners, changes)
	return changes
}

// Current returns the facts of the last read, or the reason why the facts cannot be used.
func (s *Source) Current() (nodespec.Cluster, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.facts, s.err
}

// SetupWithManager registers the controller: every change of a watched object leads to one read of all objects.
// Optional kinds are watched only if the API server serves them, because a controller does not start if a watched
// kind is missing.
func (s *Source) SetupWithManager(mgr ctrl.Manager, serves func(schema.GroupVersionKind) bool) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("cluster-configuration")
	one := queue.Enqueue(ctrl.Request{})
	for _, watched := range cluster.Objects() {
		b = b.Watches(watched.Object, one, builder.OnlyMetadata, builder.WithPredicates(newNamePredicate(watched)))
	}
	byName, err := newNamedObjects(mgr, s.namespace)
	if err != nil {
		return err
	}
	for _, kind := range byName.kinds {
		b = b.WatchesRawSource(source.Kind(byName.cache, kind, one))
	}
	kept, err := queue.NewOptionalCache(mgr, nil)
	if err != nil {
		return err
	}
	for _, watched := range cluster.OptionalObjects() {
		kind, err := apiutil.GVKForObject(watched.Object, mgr.GetScheme())
		if err != nil {
			return fmt.Errorf("watch %T: %w", watched.Object, err)
		}
		if serves(kind) {
			b = b.WatchesRawSource(queue.OptionalKind(kept, metadataOf(kind), one, newNamePredicate(watched)))
		}
	}
	if err := b.WithOptions(queue.Options()).Complete(s); err != nil {
		return fmt.Errorf("watch the cluster's configuration: %w", err)
	}
	return nil
}

// Reconcile reads the cluster. After a failed request, the last good facts remain; an absent or invalid object
// discards them. While an optional object of the last good read is absent for less than the grace period, nodes
// follow that read.
func (s *Source) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	reader := newRecordingReader(s.reader)
	facts, notices, err := cluster.Read(ctx, reader, s.namespace, s.good.facts.MetricsServing)
	var fault *cluster.Error
	if err != nil && !errors.As(err, &fault) {
		// With good facts, the operator continues; without them, instances report the reason for the wait.
		if _, before := s.Current(); errors.Is(before, errNotRead) {
			s.storeAndNotify(ctx, facts, fmt.Errorf("%w: %w", errNotRead, err))
		}
		return ctrl.Result{}, fmt.Errorf("read the cluster's configuration: %w", err)
	}
	next := rereadInterval
	if err == nil {
		rest, begun := s.absences.observeRead(reader.found, s.clock.Now())
		if len(begun) > 0 && rest > 0 {
			log.FromContext(ctx).Info("an object does not exist; nodes keep their configuration for a grace period", "objects", begun,
				"time", rest.String())
		}
		if rest > 0 {
			next = rest
		} else {
			s.good = goodRead{facts, notices}
		}
		facts, notices = s.good.facts, s.good.notices
	} else {
		s.absences.clearFound(reader.found)
	}
	s.storeAndNotify(ctx, facts, err)
	if s.Report != nil {
		if err := s.Report.reportSupport(ctx, s.Report.evaluateSupport(facts, err)); err != nil {
			return ctrl.Result{}, err
		}
		// Without a usable cluster, the unsupported settings are unknown.
		if err == nil {
			if err := s.Report.reportSettings(ctx, notices); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// storeAndNotify stores the result of a read, and notifies the listeners if it has changed.
func (s *Source) storeAndNotify(ctx context.Context, facts nodespec.Cluster, err error) {
	if !s.storeResult(facts, err) {
		return
	}
	if err != nil {
		log.FromContext(ctx).Info("the cluster's configuration cannot be used", "reason", err.Error())
	}
	for _, changes := range s.listeners {
		select {
		case changes <- event.GenericEvent{Object: &corev1.ConfigMap{}}:
		default: // an event is already pending
		}
	}
}

// storeResult stores the result of a read and reports whether it has changed.
func (s *Source) storeResult(facts nodespec.Cluster, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := reflect.DeepEqual(s.facts, facts) && fmt.Sprint(s.err) == fmt.Sprint(err)
	s.facts, s.err = facts, err
	return !same
}
