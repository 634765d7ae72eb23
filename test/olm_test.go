package test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/olm"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// lifecycleManager does what the Operator Lifecycle Manager does with the bundle in deploy/olm: it makes a Deployment
// and its rights of the ClusterServiceVersion, owned by it, and when that is deleted takes away what the garbage
// collector does not.
type lifecycleManager struct {
	*testing.T
	rig    *rig.Rig
	bundle *olm.Bundle
}

const bundleManifests = "../deploy/olm/bundle/manifests"

// newLifecycleManager reads the bundle, and gives the cluster the kind ClusterServiceVersion.
func newLifecycleManager(t *testing.T, r *rig.Rig) *lifecycleManager {
	t.Helper()
	bundle, err := olm.Read(bundleManifests)
	must(t, err)
	definition, err := olm.Definition()
	must(t, err)
	must(t, r.Apply(t.Context(), definition))
	return &lifecycleManager{T: t, rig: r, bundle: bundle}
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
	var objects []*unstructured.Unstructured
	objects = append(objects, m.bundle.ClusterWide()...)
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
	must(m.T, m.rig.Client.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"replicas":1}}`))))
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
	csv := m.version(namespace)
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

func (m *lifecycleManager) version(namespace string) *unstructured.Unstructured {
	m.Helper()
	csv, err := m.bundle.ClusterServiceVersion(namespace)
	must(m.T, err)
	return csv
}

// objects are what OLM makes of the ClusterServiceVersion.
func (m *lifecycleManager) objects(namespace string) []*unstructured.Unstructured {
	m.Helper()
	objects, err := m.bundle.Objects(namespace)
	must(m.T, err)
	return objects
}

func (m *lifecycleManager) deployment(namespace string) *unstructured.Unstructured {
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	deployment.SetNamespace(namespace)
	deployment.SetName(m.bundle.Version.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name)
	return deployment
}

// run starts the operator, in the place of the pod that no node of the lab runs.
func (m *lifecycleManager) run() *rig.Operator {
	m.Helper()
	o, err := m.rig.RunOperator(func(c *operator.Config) { c.OperatorCondition = m.bundle.Version.Name })
	must(m.T, err)
	return o
}

// uninstall deletes the Subscription and the ClusterServiceVersion, as the console's button does. The garbage collector
// and OLM take away the rest, and the operator ends.
func (m *lifecycleManager) uninstall(namespace string, running *rig.Operator) {
	m.Helper()
	ctx := m.Context()
	subscription, err := rig.Example("wmco-sub.yaml")
	must(m.T, err)
	subscription.SetNamespace(namespace)
	must(m.T, m.rig.Client.Delete(ctx, subscription))
	must(m.T, m.rig.Client.Delete(ctx, m.version(namespace)))
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
