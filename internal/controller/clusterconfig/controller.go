// Package clusterconfig keeps the facts of the cluster that every host depends on. It reads them when an object
// changes, and shares them with all instances.
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

// The pull secret and the authorities of the API server's clients are in namespaces of others; a bundle for OLM can
// bring no Role there.
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=extension-apiserver-authentication,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=pull-secret,verbs=get;list;watch

// rereadInterval is between two reads when nothing was seen to change: a watch may miss something, and a report may
// have been undone.
const rereadInterval = 10 * time.Minute

// errNotRead is the state before the first read.
var errNotRead = errors.New("it has not been read yet")

// Source reads the cluster and keeps what it found.
type Source struct {
	// Report reports whether the operator can serve the cluster; nil tells nobody.
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

// NewSource makes a source that reads the API server directly.
func NewSource(reader client.Reader, namespace string) *Source {
	return &Source{reader: reader, namespace: namespace, clock: clock.RealClock{}, err: errNotRead}
}

// Changes returns a channel with an event after the facts have changed; several changes may have one event. It must be
// called before the controller starts.
func (s *Source) Changes() <-chan event.GenericEvent {
	changes := make(chan event.GenericEvent, 1)
	s.listeners = append(s.listeners, changes)
	return changes
}

// Current returns the facts that were read last, or why they cannot be used.
func (s *Source) Current() (nodespec.Cluster, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.facts, s.err
}

// SetupWithManager registers the controller: every change of a watched object leads to one read of all. Of the kinds
// that a cluster need not have, only those that the API server serves are watched: a controller does not start without
// its kinds.
func (s *Source) SetupWithManager(mgr ctrl.Manager, serves func(schema.GroupVersionKind) bool) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("cluster-configuration")
	one := queue.Enqueue(ctrl.Request{})
	for _, watched := range cluster.Objects() {
		b = b.Watches(watched.Object, one, builder.OnlyMetadata, builder.WithPredicates(named(watched)))
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
			b = b.WatchesRawSource(queue.OptionalKind(kept, metadataOf(kind), one, named(watched)))
		}
	}
	if err := b.WithOptions(queue.Options()).Complete(s); err != nil {
		return fmt.Errorf("watch the cluster's configuration: %w", err)
	}
	return nil
}

// Reconcile reads the cluster. After a failed request the last good facts stay; an absent or wrong object discards
// them. Nodes follow the last good read as long as an optional object of it is absent for less than the grace period.
func (s *Source) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	reader := newRecordingReader(s.reader)
	facts, notices, err := cluster.Read(ctx, reader, s.namespace, s.good.facts.MetricsServing)
	var fault *cluster.Error
	if err != nil && !errors.As(err, &fault) {
		// With good facts there is something to go on with; without them, instances say what they wait for.
		if _, before := s.Current(); errors.Is(before, errNotRead) {
			s.take(ctx, facts, fmt.Errorf("%w: %w", errNotRead, err))
		}
		return ctrl.Result{}, fmt.Errorf("read the cluster's configuration: %w", err)
	}
	next := rereadInterval
	if err == nil {
		rest, begun := s.absences.observe(reader.found, s.clock.Now())
		if len(begun) > 0 && rest > 0 {
			log.FromContext(ctx).Info("an object is absent; for some time nodes keep their configuration", "objects", begun,
				"time", rest.String())
		}
		if rest > 0 {
			next = rest
		} else {
			s.good = goodRead{facts, notices}
		}
		facts, notices = s.good.facts, s.good.notices
	} else {
		s.absences.forget(reader.found)
	}
	s.take(ctx, facts, err)
	if s.Report != nil {
		if err := s.Report.report(ctx, s.Report.judge(facts, err)); err != nil {
			return ctrl.Result{}, err
		}
		// Of a cluster that cannot be used it is not known what would be followed.
		if err == nil {
			if err := s.Report.reportSettings(ctx, notices); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// take keeps what was read, and tells others when it differs from before.
func (s *Source) take(ctx context.Context, facts nodespec.Cluster, err error) {
	if !s.keep(facts, err) {
		return
	}
	if err != nil {
		log.FromContext(ctx).Info("the cluster's configuration cannot be used", "reason", err.Error())
	}
	for _, changes := range s.listeners {
		select {
		case changes <- event.GenericEvent{Object: &corev1.ConfigMap{}}:
		default: // an event is waiting already
		}
	}
}

// keep stores what was read and reports whether it differs from before.
func (s *Source) keep(facts nodespec.Cluster, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := reflect.DeepEqual(s.facts, facts) && fmt.Sprint(s.err) == fmt.Sprint(err)
	s.facts, s.err = facts, err
	return !same
}
