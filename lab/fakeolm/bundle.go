// Package fakeolm simulates the Operator Lifecycle Manager: it installs, upgrades and removes the contents of
// bundles by OLM's documented rules. No real OLM runs here.
package fakeolm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/crds"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Bundle contains the manifests of a release.
type Bundle struct {
	// Version specifies the objects that OLM creates, and their rights.
	Version *v1alpha1.ClusterServiceVersion

	clusterWide, namespaced []*unstructured.Unstructured // all other objects
}

// namespacedKinds are the kinds in a bundle that OLM creates in the operator's namespace, owned by the
// ClusterServiceVersion.
var namespacedKinds = map[string]bool{"Service": true, "Role": true, "RoleBinding": true, "ServiceAccount": true}

// Read reads the directory with a bundle's manifests.
func Read(manifests string) (*Bundle, error) {
	paths, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	if err != nil {
		return nil, err
	}
	b := &Bundle{}
	for _, path := range paths {
		if err := b.read(path); err != nil {
			return nil, fmt.Errorf("read the bundle's %s: %w", filepath.Base(path), err)
		}
	}
	if b.Version == nil {
		return nil, fmt.Errorf("there is no ClusterServiceVersion in %s", manifests)
	}
	return b, nil
}

func (b *Bundle) read(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(data, &object.Object); err != nil {
		return err
	}
	switch kind := object.GetKind(); {
	case kind == "ClusterServiceVersion":
		b.Version = &v1alpha1.ClusterServiceVersion{}
		return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, b.Version, true)
	case namespacedKinds[kind]:
		b.namespaced = append(b.namespaced, object)
	default:
		b.clusterWide = append(b.clusterWide, object)
	}
	return nil
}

// Definitions returns the definitions of OLM kinds that the operator never accesses.
func Definitions() ([]*unstructured.Unstructured, error) {
	list := &objectList{}
	for _, definition := range []client.Object{crds.ClusterServiceVersion(), crds.InstallPlan(), crds.CatalogSource()} {
		list.addObject(definition, "apiextensions.k8s.io/v1", "CustomResourceDefinition")
	}
	return list.objects, errors.Join(list.errs...)
}

// As returns the bundle as another release that replaces this release.
func (b *Bundle) As(version string) (*Bundle, error) {
	parsed, err := semver.Parse(version)
	if err != nil {
		return nil, err
	}
	next := *b
	next.Version = b.Version.DeepCopy()
	next.Version.Spec.Replaces = b.Version.Name
	next.Version.Name = strings.TrimSuffix(b.Version.Name, b.Version.Spec.Version.String()) + version
	next.Version.Spec.Version.Version = parsed
	return &next, nil
}

// ClusterServiceVersion returns the ClusterServiceVersion that OLM creates in a namespace.
func (b *Bundle) ClusterServiceVersion(namespace string) (*unstructured.Unstructured, error) {
	object, err := toUnstructured(b.Version, "operators.coreos.com/v1alpha1", "ClusterServiceVersion")
	if err == nil {
		object.SetNamespace(namespace)
	}
	return object, err
}

// ClusterWide returns the bundle's objects that OLM keeps when the operator is uninstalled: definitions, and
// the rights of the programs on nodes.
func (b *Bundle) ClusterWide() []*unstructured.Unstructured { return b.clusterWide }

// Objects returns the objects that OLM creates, and deletes with the ClusterServiceVersion: Deployment,
// ServiceAccount, rights, OperatorCondition, and the bundle's objects in the operator's namespace.
func (b *Bundle) Objects(namespace string) ([]*unstructured.Unstructured, error) {
	list := &objectList{}
	strategy := b.Version.Spec.InstallStrategy.StrategySpec
	for _, spec := range strategy.DeploymentSpecs {
		meta := metav1.ObjectMeta{Name: spec.Spec.Template.Spec.ServiceAccountName, Namespace: namespace}
		list.addObject(&corev1.ServiceAccount{ObjectMeta: meta}, "v1", "ServiceAccount")
		list.addDeployment(spec, namespace, b.Version.Name)
	}
	condition := &unstructured.Unstructured{}
	condition.SetAPIVersion("operators.coreos.com/v2")
	condition.SetKind("OperatorCondition")
	condition.SetNamespace(namespace)
	condition.SetName(b.Version.Name)
	list.objects = append(list.objects, condition)
	for _, object := range b.namespaced {
		object = object.DeepCopy()
		object.SetNamespace(namespace)
		list.objects = append(list.objects, object)
	}
	name := b.Version.Name + "-lab"
	for _, p := range strategy.Permissions {
		meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
		list.addObject(&rbacv1.Role{ObjectMeta: meta, Rules: p.Rules}, rbac, "Role")
		subjects := accountSubjects(p.ServiceAccountName, namespace)
		list.addObject(&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: roleRef("Role", name), Subjects: subjects},
			rbac, "RoleBinding")
	}
	for _, p := range strategy.ClusterPermissions {
		meta := metav1.ObjectMeta{Name: name}
		list.addObject(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: p.Rules}, rbac, "ClusterRole")
		subjects := accountSubjects(p.ServiceAccountName, namespace)
		list.addObject(&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: roleRef("ClusterRole", name), Subjects: subjects},
			rbac, "ClusterRoleBinding")
	}
	return list.objects, errors.Join(list.errs...)
}

const rbac = "rbac.authorization.k8s.io/v1"

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func accountSubjects(name, namespace string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace}}
}

// objectList collects objects and conversion errors.
type objectList struct {
	objects []*unstructured.Unstructured
	errs    []error
}

func (l *objectList) addObject(object client.Object, apiVersion, kind string) {
	u, err := toUnstructured(object, apiVersion, kind)
	l.objects, l.errs = append(l.objects, u), append(l.errs, err)
}

// addDeployment adds the Deployment with OLM's settings: the namespaces to watch and the name of the
// OperatorCondition.
func (l *objectList) addDeployment(d v1alpha1.StrategyDeploymentSpec, namespace, condition string) {
	template := d.Spec.Template.DeepCopy()
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, "olm.targetNamespaces", namespace)
	environment := &template.Spec.Containers[0].Env
	*environment = append(*environment, corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: condition})
	d.Spec.Template = *template
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d.Spec)
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	deployment.SetAPIVersion("apps/v1")
	deployment.SetKind("Deployment")
	deployment.SetNamespace(namespace)
	deployment.SetName(d.Name)
	deployment.SetLabels(d.Label)
	l.objects = append(l.objects, deployment)
}

// toUnstructured converts a typed object to the form of the API, without fields that only a server writes.
func toUnstructured(object client.Object, apiVersion, kind string) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return nil, err
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u, nil
}
