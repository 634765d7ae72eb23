// Package clusterconfig keeps the facts of the cluster that every host depends on: read when an object changes, shared by all.
package clusterconfig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures;clusterversions;networks,verbs=get;list;watch
// +kubebuilder:rbac:groups=operator.openshift.io,resources=networks,verbs=get;list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools;machineconfigs;controllerconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=system,resources=configmaps,verbs=get;list;watch

// rereadInterval is between two reads when nothing was seen to change: a watch may miss something, and a report may have been undone.
const rereadInterval = 10 * time.Minute

// errNotRead is the state before the first read.
var errNotRead = errors.New("the cluster's configuration was not read yet")

// Source reads the cluster and keeps what it found.
type Source struct {
	// Report tells whether the operator can serve the cluster; nil tells nobody.
	Report *Reporter

	reader    client.Reader
	namespace string
	changed   chan<- event.GenericEvent

	mu    sync.RWMutex
	facts nodespec.Cluster
	err   error
}

// NewSource makes a source that reads the API server directly and tells on changed when the facts differ from before.
func NewSource(reader client.Reader, namespace string, changed chan<- event.GenericEvent) *Source {
	return &Source{reader: reader, namespace: namespace, changed: changed, err: errNotRead}
}

// Current returns the facts that were read last, or why they cannot be used.
func (s *Source) Current() (nodespec.Cluster, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.facts, s.err
}

// SetupWithManager registers the controller: every change of a watched object leads to one read of all.
func (s *Source) SetupWithManager(mgr ctrl.Manager) error {
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	b := ctrl.NewControllerManagedBy(mgr).Named("cluster-configuration")
	for _, watched := range cluster.Objects() {
		named := predicate.NewPredicateFuncs(func(o client.Object) bool { return watched.Names(o.GetName()) })
		b = b.Watches(watched.Object, once, builder.OnlyMetadata, builder.WithPredicates(named))
	}
	certificates, err := s.apiServerCA(mgr)
	if err != nil {
		return err
	}
	return b.WatchesRawSource(source.Kind(certificates.GetCache(), client.Object(certificateAuthority()), once)).Complete(s)
}

// apiServerCA has a cache of its own for the one ConfigMap: what the manager keeps of ConfigMaps is for others to say.
func (s *Source) apiServerCA(mgr ctrl.Manager) (ctrlcluster.Cluster, error) {
	name := cluster.APIServerCA(s.namespace)
	only := cache.Config{FieldSelector: fields.OneTermEqualSelector("metadata.name", name.Name)}
	watched, err := ctrlcluster.New(mgr.GetConfig(), func(o *ctrlcluster.Options) {
		o.Scheme, o.Logger, o.HTTPClient = mgr.GetScheme(), mgr.GetLogger(), mgr.GetHTTPClient()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mgr.GetRESTMapper(), nil }
		o.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{name.Namespace: only}}
	})
	if err == nil {
		err = mgr.Add(watched)
	}
	if err != nil {
		return nil, fmt.Errorf("watch ConfigMap %s: %w", name, err)
	}
	return watched, nil
}

// certificateAuthority is a ConfigMap of which only the metadata is kept.
func certificateAuthority() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return object
}

// Reconcile reads the cluster. A request that fails keeps the last good facts; an object that is absent or wrong does not.
func (s *Source) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	facts, err := cluster.Read(ctx, s.reader, s.namespace)
	var fault *cluster.Error
	if err != nil && !errors.As(err, &fault) {
		return ctrl.Result{}, fmt.Errorf("read the cluster's configuration: %w", err)
	}
	if s.keep(facts, err) {
		if err != nil {
			log.FromContext(ctx).Info("the cluster's configuration cannot be used", "reason", err.Error())
		}
		select {
		case s.changed <- event.GenericEvent{Object: &corev1.ConfigMap{}}:
		case <-ctx.Done():
		}
	}
	if s.Report != nil {
		if err := s.Report.report(ctx, judge(facts, err)); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: rereadInterval}, nil
}

// keep stores what was read and tells whether it differs from before.
func (s *Source) keep(facts nodespec.Cluster, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := reflect.DeepEqual(s.facts, facts) && fmt.Sprint(s.err) == fmt.Sprint(err)
	s.facts, s.err = facts, err
	return !same
}
