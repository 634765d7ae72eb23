package install

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// resource identifies the API resource of a kind.
type resource struct {
	schema.GroupVersionResource
	// status is true if the status is a subresource, which a create ignores.
	status bool
}

func (r resource) client(client dynamic.Interface, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return client.Resource(r.GroupVersionResource)
	}
	return client.Resource(r.GroupVersionResource).Namespace(namespace)
}

// resources maps kinds to resources without the API server, which does not serve them yet.
type resources struct {
	byKind  map[schema.GroupVersionKind]resource
	defined []schema.GroupVersionResource
}

func newResources(crds []*unstructured.Unstructured) (*resources, error) {
	rs := &resources{byKind: map[schema.GroupVersionKind]resource{}}
	core := schema.GroupVersion{Version: "v1"}
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	rs.add(core, "Namespace", "namespaces", false)
	rs.add(core, "ConfigMap", "configmaps", false)
	rs.add(core, "Secret", "secrets", false)
	rs.add(core, "ServiceAccount", "serviceaccounts", false)
	rs.add(rbac, "ClusterRole", "clusterroles", false)
	rs.add(rbac, "ClusterRoleBinding", "clusterrolebindings", false)
	for _, object := range crds {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
			return nil, fmt.Errorf("read definition %s: %w", object.GetName(), err)
		}
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			gv := schema.GroupVersion{Group: crd.Spec.Group, Version: version.Name}
			rs.add(gv, crd.Spec.Names.Kind, crd.Spec.Names.Plural, version.Subresources != nil &&
				version.Subresources.Status != nil)
			rs.defined = append(rs.defined, gv.WithResource(crd.Spec.Names.Plural))
		}
	}
	return rs, nil
}

func (rs *resources) add(gv schema.GroupVersion, kind, plural string, status bool) {
	rs.byKind[gv.WithKind(kind)] = resource{GroupVersionResource: gv.WithResource(plural), status: status}
}

func (rs *resources) of(object *unstructured.Unstructured) (resource, error) {
	r, ok := rs.byKind[object.GroupVersionKind()]
	if !ok {
		return resource{}, fmt.Errorf("kind %s of object %s is neither defined nor listed in newResources",
			object.GroupVersionKind(), object.GetName())
	}
	return r, nil
}
