package clusterconfig

import (
	"fmt"
	"net/http"

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
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/windows-machine-config/wmco/internal/cluster"
)

// newNamePredicate accepts events of the objects that are read.
func newNamePredicate(watched cluster.Watched) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return watched.Names(o.GetName()) })
}

// metadataOf returns an object that holds only metadata.
func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// namedObjects are ConfigMaps and Secrets that are each watched by name, because the operator may read only these.
type namedObjects struct {
	cache cache.Cache
	kinds []client.Object
}

// newNamedObjects creates a separate cache, because the manager's cache of ConfigMaps and Secrets is configured
// elsewhere.
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
