package clusterconfig

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/optional"
)

// absentInterval is how often the API server is asked for kinds that it did not have.
const absentInterval = time.Minute

// optionalKinds are the kinds of cluster.OptionalObjects that are not watched yet. A controller that watches a kind
// which the API server does not have would not start.
type optionalKinds struct {
	mgr        ctrl.Manager
	cache      cache.Cache
	controller controller.Controller
	waiting    []cluster.Watched
}

// watch begins to watch those kinds that the API server has now.
func (k *optionalKinds) watch(ctx context.Context) error {
	var waiting []cluster.Watched
	for i, watched := range k.waiting {
		kind, err := apiutil.GVKForObject(watched.Object, k.mgr.GetScheme())
		if err == nil {
			_, err = k.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		}
		if meta.IsNoMatchError(err) {
			waiting = append(waiting, watched)
			continue
		}
		if err == nil {
			err = k.controller.Watch(optional.Kind(k.cache, metadataOf(kind), once(), named(watched)))
		}
		if err != nil {
			k.waiting = append(waiting, k.waiting[i:]...)
			return fmt.Errorf("watch %T: %w", watched.Object, err)
		}
		log.FromContext(ctx).V(1).Info("watching an optional kind", "kind", kind.Kind)
	}
	k.waiting = waiting
	return nil
}

// next returns the time until the cluster is read again though nothing was seen to change.
func (k *optionalKinds) next() time.Duration {
	if len(k.waiting) > 0 {
		return absentInterval
	}
	return rereadInterval
}

// once asks for one read for all that changes.
func once() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
}

// named lets through what concerns the objects that are read.
func named(watched cluster.Watched) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return watched.Names(o.GetName()) })
}

// metadataOf returns an object of which only the metadata is kept.
func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// namedObjects are ConfigMaps and Secrets of which each is watched by its name, as the operator may see no other.
type namedObjects struct {
	cache cache.Cache
	kinds []client.Object
}

// newNamedObjects has a cache of its own: what the manager keeps of ConfigMaps and Secrets is for others to say.
func newNamedObjects(mgr ctrl.Manager, namespace string) (namedObjects, error) {
	only := func(names ...types.NamespacedName) cache.ByObject {
		namespaces := map[string]cache.Config{}
		for _, name := range names {
			namespaces[name.Namespace] = cache.Config{FieldSelector: fields.OneTermEqualSelector("metadata.name", name.Name)}
		}
		return cache.ByObject{Namespaces: namespaces}
	}
	configMaps := client.Object(metadataOf(corev1.SchemeGroupVersion.WithKind("ConfigMap")))
	secrets := client.Object(metadataOf(corev1.SchemeGroupVersion.WithKind("Secret")))
	watched, err := ctrlcluster.New(mgr.GetConfig(), func(o *ctrlcluster.Options) {
		o.Scheme, o.Logger, o.HTTPClient = mgr.GetScheme(), mgr.GetLogger(), mgr.GetHTTPClient()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mgr.GetRESTMapper(), nil }
		o.Cache = cache.Options{ByObject: map[client.Object]cache.ByObject{
			configMaps: only(cluster.APIServerCA(namespace), cluster.MetricsClients),
			secrets:    only(cluster.PullSecret, cluster.MetricsServing(namespace)),
		}}
	})
	if err == nil {
		err = mgr.Add(watched)
	}
	if err != nil {
		return namedObjects{}, fmt.Errorf("watch ConfigMaps %s and %s, and Secrets %s and %s: %w", cluster.APIServerCA(namespace),
			cluster.MetricsClients, cluster.PullSecret, cluster.MetricsServing(namespace), err)
	}
	return namedObjects{watched.GetCache(), []client.Object{configMaps, secrets}}, nil
}
