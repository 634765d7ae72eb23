package test

import (
	"context"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/fakeolm"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// lifecycleManager is an administrator of a cluster where lab/fakeolm simulates OLM.
type lifecycleManager struct {
	*testing.T
	env    *testenv.Environment
	bundle *fakeolm.Bundle
	player *fakeolm.Player
	client client.Client // has OLM's kinds in its scheme
}

const (
	bundleManifests = "../deploy/olm/bundle/manifests"
	catalogFile     = "../deploy/olm/catalog/catalog.yaml"
	marketplace     = "openshift-marketplace"
	catalogImage    = "registry.example.com/catalog:v1"
)

// newLifecycleManager reads bundle and catalog, and adds OLM's kinds and the catalog of the guide's Subscription to
// the cluster.
func newLifecycleManager(t *testing.T, r *testenv.Environment) *lifecycleManager {
	t.Helper()
	bundle, err := fakeolm.Read(bundleManifests)
	requireNoError(t, err)
	catalog, err := fakeolm.ReadCatalog(catalogFile)
	requireNoError(t, err)
	definitions, err := fakeolm.Definitions()
	requireNoError(t, err)
	requireNoError(t, r.ApplyObjects(t.Context(), definitions))
	player, err := fakeolm.NewPlayer(r.Cluster().Config)
	requireNoError(t, err)
	player.Images[catalogImage], player.Bundles[bundle.Version.Name] = catalog, bundle
	player.Install = func(ctx context.Context, namespace string, objects []*unstructured.Unstructured) error {
		if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceAccount" }) {
			return r.ApplyObjects(ctx, objects)
		}
		_, err := r.InstallObjects(ctx, namespace, objects)
		return err
	}
	scheme := runtime.NewScheme()
	requireNoError(t, v1alpha1.AddToScheme(scheme))
	typed, err := client.New(r.Cluster().Config, client.Options{Scheme: scheme})
	requireNoError(t, err)
	m := &lifecycleManager{T: t, env: r, bundle: bundle, player: player, client: typed}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: marketplace}}
	requireNoError(t, client.IgnoreAlreadyExists(r.Client.Create(t.Context(), namespace)))
	m.createCatalogSource("redhat-operators", catalogImage)
	return m
}

// createCatalogSource creates a CatalogSource with the image of a catalog.
func (m *lifecycleManager) createCatalogSource(name, image string) {
	m.Helper()
	requireNoError(m.T, m.client.Create(m.Context(), &v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: marketplace, Name: name},
		Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: image},
	}))
}

// createSubscription creates the objects of the guide for a namespace, each modified by change.
func (m *lifecycleManager) createSubscription(namespace string, change func(*unstructured.Unstructured)) {
	m.Helper()
	for _, name := range []string{"wmco-namespace.yaml", "wmco-og.yaml", "wmco-sub.yaml"} {
		object, err := testenv.Example(name)
		requireNoError(m.T, err)
		if object.GetKind() == "Namespace" {
			object.SetName(namespace)
		} else {
			object.SetNamespace(namespace)
		}
		if object.GetKind() == "OperatorGroup" {
			requireNoError(m.T, unstructured.SetNestedStringSlice(object.Object, []string{namespace}, "spec", "targetNamespaces"))
		}
		change(object)
		requireNoError(m.T, m.env.Apply(m.Context(), object))
	}
}

// syncUntil runs OLM until the condition holds.
func (m *lifecycleManager) syncUntil(namespace, what string, holds func(ctx context.Context) (bool, error)) {
	m.Helper()
	waitUntil(m.T, what, func(ctx context.Context) (bool, error) {
		if err := m.player.Sync(ctx, namespace); err != nil {
			return false, err
		}
		return holds(ctx)
	})
}

// releasePhase returns phase and reason of a release, or "" if the release does not exist.
func (m *lifecycleManager) releasePhase(ctx context.Context, namespace, name string) (string, error) {
	csv := &v1alpha1.ClusterServiceVersion{}
	err := m.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, csv)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return string(csv.Status.Phase) + " " + string(csv.Status.Reason), nil
}

// waitForPhase runs OLM until a release has a phase.
func (m *lifecycleManager) waitForPhase(namespace, release, phase string) {
	m.Helper()
	m.syncUntil(namespace, release+" is "+phase, func(ctx context.Context) (bool, error) {
		got, err := m.releasePhase(ctx, namespace, release)
		return got == phase, err
	})
}

const succeeded = "Succeeded InstallSucceeded"

// installOperator subscribes to the operator according to the guide, and runs OLM.
func (m *lifecycleManager) installOperator(namespace string) {
	m.Helper()
	ctx := m.Context()
	m.createSubscription(namespace, func(*unstructured.Unstructured) {})
	m.waitForPhase(namespace, m.bundle.Version.Name, succeeded)
	// No node of the lab runs the pod. Its creation and recreation are enough.
	deployment := m.operatorDeployment(namespace)
	requireNoError(m.T, m.env.Client.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"replicas":1}}`))))
	waitUntil(m.T, "the operator's pod is made", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := m.env.Client.List(ctx, &pods, client.InNamespace(namespace))
		return len(pods.Items) > 0, err
	})
	requireNoError(m.T, m.env.CreateKey(ctx))
}

// bundleObjects returns the objects that OLM creates for the ClusterServiceVersion.
func (m *lifecycleManager) bundleObjects(namespace string) []*unstructured.Unstructured {
	m.Helper()
	objects, err := m.bundle.Objects(namespace)
	requireNoError(m.T, err)
	return objects
}

func (m *lifecycleManager) operatorDeployment(namespace string) *unstructured.Unstructured {
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	deployment.SetNamespace(namespace)
	deployment.SetName(m.bundle.Version.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name)
	return deployment
}

// run starts the operator instead of the pod, which no node of the lab runs.
func (m *lifecycleManager) run() *testenv.Operator {
	m.Helper()
	o, err := m.env.RunOperator(func(c *operator.Config) { c.OperatorCondition = m.bundle.Version.Name })
	requireNoError(m.T, err)
	return o
}

// uninstallOperator deletes the Subscription and the ClusterServiceVersion, as the console's button does. The garbage
// collector and OLM delete the other objects, and the operator ends.
func (m *lifecycleManager) uninstallOperator(namespace string, running *testenv.Operator) {
	m.Helper()
	ctx := m.Context()
	subscription, err := testenv.Example("wmco-sub.yaml")
	requireNoError(m.T, err)
	subscription.SetNamespace(namespace)
	requireNoError(m.T, m.env.Client.Delete(ctx, subscription))
	csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: m.bundle.Version.Name}}
	requireNoError(m.T, m.client.Delete(ctx, csv))
	for _, object := range m.bundleObjects(namespace) {
		m.syncUntil(namespace, object.GetKind()+" "+object.GetName()+" is gone", func(ctx context.Context) (bool, error) {
			err := m.env.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
	if err := running.Stop(); err != nil {
		m.Logf("it lost its rights before it ended: %v", err)
	}
}
