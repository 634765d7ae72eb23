package sshkeysecret

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/userdata"
)

// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=openshift-machine-api;openshift-cluster-api,verbs=list;watch

// SecretCache returns the cache configuration for the Secrets: the private key in the operator's namespace, and the
// user data. Each Secret is selected by name, because the operator may read no other Secrets.
func SecretCache(namespace string) cache.ByObject {
	named := func(name string) cache.Config {
		return cache.Config{FieldSelector: fields.OneTermEqualSelector("metadata.name", name)}
	}
	namespaces := map[string]cache.Config{}
	for _, other := range userDataNamespaces {
		namespaces[other] = named(userdata.SecretName)
	}
	namespaces[namespace] = named(SecretName)
	return cache.ByObject{Namespaces: namespaces}
}

// namespaceCaches contain one Namespace each, by name, because a cache can select only one name.
type namespaceCaches map[string]cache.Cache

// newNamespaceCaches creates the caches and adds them to the manager.
func newNamespaceCaches(mgr ctrl.Manager) (namespaceCaches, error) {
	all := namespaceCaches{}
	for _, name := range userDataNamespaces {
		one, err := cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Namespace{}: {Field: fields.OneTermEqualSelector("metadata.name", name)},
			},
		})
		if err != nil {
			return nil, fmt.Errorf("create a cache for Namespace %s: %w", name, err)
		}
		if err := mgr.Add(one); err != nil {
			return nil, fmt.Errorf("run the cache for Namespace %s: %w", name, err)
		}
		all[name] = one
	}
	return all, nil
}

// hasNamespace reports whether a namespace exists and accepts new objects. A namespace that is being deleted does not.
func (c namespaceCaches) hasNamespace(ctx context.Context, name string) (bool, error) {
	return namespaceExists(ctx, c[name], name)
}

func namespaceExists(ctx context.Context, reader client.Reader, name string) (bool, error) {
	namespace := &corev1.Namespace{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("read Namespace %s: %w", name, err))
	}
	return namespace.DeletionTimestamp.IsZero(), nil
}
