package test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/operator-framework/api/crds"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// lifecycleManager does what the Operator Lifecycle Manager does with the bundle in deploy/olm: it makes a Deployment and its rights of the
// ClusterServiceVersion, owned by it, and when that is deleted takes away what the garbage collector does not.
type lifecycleManager struct {
	*testing.T
	rig *rig.Rig
	csv *v1alpha1.ClusterServiceVersion
	// besides are the other objects of the bundle: definitions, and the rights of the nodes' programs. OLM leaves them.
	besides []*unstructured.Unstructured
}

const bundleManifests = "../deploy/olm/bundle/manifests"

// newLifecycleManager reads the bundle, and gives the cluster the kind ClusterServiceVersion.
func newLifecycleManager(t *testing.T, r *rig.Rig) *lifecycleManager {
	t.Helper()
	m := &lifecycleManager{T: t, rig: r}
	paths, err := filepath.Glob(filepath.Join(bundleManifests, "*.yaml"))
	must(t, err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		must(t, err)
		object := &unstructured.Unstructured{}
		must(t, yaml.UnmarshalStrict(data, &object.Object))
		if object.GetKind() != "ClusterServiceVersion" {
			m.besides = append(m.besides, object)
			continue
		}
		m.csv = &v1alpha1.ClusterServiceVersion{}
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, m.csv, true))
	}
	must(t, r.Apply(t.Context(), unstructuredOf(t, crds.ClusterServiceVersion(), "apiextensions.k8s.io/v1", "CustomResourceDefinition")))
	return m
}

// unstructuredOf is a typed object as the API has it, without what only a server writes.
func unstructuredOf(t *testing.T, object client.Object, apiVersion, kind string) *unstructured.Unstructured {
	t.Helper()
	data, err := json.Marshal(object)
	must(t, err)
	u := &unstructured.Unstructured{}
	must(t, json.Unmarshal(data, &u.Object))
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u
}

// install subscribes to the operator as the guide says, and does what OLM does then.
func (m *lifecycleManager) install(namespace string) {
	m.Helper()
	ctx := m.Context()
	for _, name := range []string{"wmco-namespace.yaml", "wmco-og.yaml", "wmco-sub.yaml"} {
		object, err := rig.Example(name)
		must(m.T, err)
		if object.GetKind() == "Namespace" {
			object.SetName(namespace)
		} else {
			object.SetNamespace(namespace)
		}
		if object.GetKind() == "OperatorGroup" {
			must(m.T, unstructured.SetNestedStringSlice(object.Object, []string{namespace}, "spec", "targetNamespaces"))
		}
		must(m.T, m.rig.Apply(ctx, object))
	}
	csv := m.applyVersion(namespace)
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(csv, csv.GroupVersionKind())}
	objects := slices.Clone(m.besides)
	for _, object := range m.objects(namespace) {
		if object.GetNamespace() != "" {
			object.SetOwnerReferences(owner)
		}
		objects = append(objects, object)
	}
	_, err := m.rig.InstallObjects(ctx, namespace, objects)
	must(m.T, err)
	// No node of the lab runs its pod; that it is made, and made again, is enough.
	deployment := m.deployment(namespace)
	must(m.T, m.rig.Client.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`))))
	eventually(m.T, "the operator's pod is made", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := m.rig.Client.List(ctx, &pods, client.InNamespace(namespace))
		return len(pods.Items) > 0, err
	})
	must(m.T, m.rig.CreateKey(ctx))
}

// applyVersion makes the ClusterServiceVersion; the API server refuses fields that the kind does not have.
func (m *lifecycleManager) applyVersion(namespace string) *unstructured.Unstructured {
	m.Helper()
	csv := unstructuredOf(m.T, m.csv, "operators.coreos.com/v1alpha1", "ClusterServiceVersion")
	csv.SetNamespace(namespace)
	eventually(m.T, "the API server serves ClusterServiceVersions", func(ctx context.Context) (bool, error) {
		err := m.rig.Apply(ctx, csv)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	must(m.T, m.rig.Client.Get(m.Context(), client.ObjectKeyFromObject(csv), csv))
	return csv
}

// objects are what OLM makes of the ClusterServiceVersion.
func (m *lifecycleManager) objects(namespace string) []*unstructured.Unstructured {
	m.Helper()
	strategy := m.csv.Spec.InstallStrategy.StrategySpec
	var objects []*unstructured.Unstructured
	for _, d := range strategy.DeploymentSpecs {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: d.Spec.Template.Spec.ServiceAccountName, Namespace: namespace}}
		template := d.Spec.Template.DeepCopy()
		template.Annotations["olm.targetNamespaces"] = namespace
		environment := &template.Spec.Containers[0].Env
		*environment = append(*environment, corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: m.csv.Name})
		d.Spec.Template = *template
		deployment := &unstructured.Unstructured{Object: map[string]any{}}
		must(m.T, unstructured.SetNestedMap(deployment.Object, unstructuredMap(m.T, &d.Spec), "spec"))
		deployment.SetLabels(d.Label)
		deployment.SetName(d.Name)
		deployment.SetNamespace(namespace)
		deployment.SetAPIVersion("apps/v1")
		deployment.SetKind("Deployment")
		objects = append(objects, unstructuredOf(m.T, account, "v1", "ServiceAccount"), deployment)
	}
	name := m.csv.Name + "-lab"
	condition := &unstructured.Unstructured{}
	condition.SetAPIVersion("operators.coreos.com/v2")
	condition.SetKind("OperatorCondition")
	condition.SetNamespace(namespace)
	condition.SetName(m.csv.Name)
	objects = append(objects, condition)
	const rbac = "rbac.authorization.k8s.io/v1"
	for _, p := range strategy.Permissions {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Rules: p.Rules}
		binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: p.ServiceAccountName, Namespace: namespace}}}
		objects = append(objects, unstructuredOf(m.T, role, rbac, "Role"), unstructuredOf(m.T, binding, rbac, "RoleBinding"))
	}
	for _, p := range strategy.ClusterPermissions {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: p.Rules}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: p.ServiceAccountName, Namespace: namespace}}}
		objects = append(objects, unstructuredOf(m.T, role, rbac, "ClusterRole"), unstructuredOf(m.T, binding, rbac, "ClusterRoleBinding"))
	}
	return objects
}

func unstructuredMap(t *testing.T, value any) map[string]any {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	must(t, err)
	return object
}

func (m *lifecycleManager) deployment(namespace string) *unstructured.Unstructured {
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	deployment.SetNamespace(namespace)
	deployment.SetName(m.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name)
	return deployment
}

// run starts the operator, in the place of the pod that no node of the lab runs.
func (m *lifecycleManager) run() *rig.Operator {
	m.Helper()
	o, err := m.rig.RunOperator(func(c *operator.Config) { c.OperatorCondition = m.csv.Name })
	must(m.T, err)
	return o
}

// uninstall deletes the Subscription and the ClusterServiceVersion, as the console's button does. The garbage collector and OLM take away the
// rest, and the operator ends.
func (m *lifecycleManager) uninstall(namespace string, running *rig.Operator) {
	m.Helper()
	ctx := m.Context()
	subscription, err := rig.Example("wmco-sub.yaml")
	must(m.T, err)
	subscription.SetNamespace(namespace)
	csv := unstructuredOf(m.T, m.csv, "operators.coreos.com/v1alpha1", "ClusterServiceVersion")
	csv.SetNamespace(namespace)
	must(m.T, m.rig.Client.Delete(ctx, subscription))
	must(m.T, m.rig.Client.Delete(ctx, csv))
	for _, object := range m.objects(namespace) {
		if object.GetNamespace() == "" {
			must(m.T, m.rig.Client.Delete(ctx, object))
			continue
		}
		eventually(m.T, object.GetKind()+" "+object.GetName()+" is gone", func(ctx context.Context) (bool, error) {
			err := m.rig.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
	if err := running.Stop(); err != nil {
		m.Logf("it lost its rights before it ended: %v", err)
	}
}
