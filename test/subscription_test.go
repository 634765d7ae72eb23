package test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/fakeolm"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// withApprovalMode sets the approval mode for InstallPlans of a Subscription.
func withApprovalMode(t *testing.T, value string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		if object.GetKind() == "Subscription" {
			requireNoError(t, unstructured.SetNestedField(object.Object, value, "spec", "installPlanApproval"))
		}
	}
}

// waitForApproval runs OLM until an InstallPlan for a release waits for approval, and checks that nothing is installed.
func (m *lifecycleManager) waitForApproval(namespace, release string) *v1alpha1.InstallPlan {
	m.Helper()
	plan := &v1alpha1.InstallPlan{}
	m.syncUntil(namespace, "the InstallPlan for "+release+" waits", func(ctx context.Context) (bool, error) {
		var plans v1alpha1.InstallPlanList
		if err := m.client.List(ctx, &plans, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		i := slices.IndexFunc(plans.Items, func(p v1alpha1.InstallPlan) bool {
			return p.Spec.ClusterServiceVersionNames[0] == release && p.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval
		})
		if i >= 0 {
			*plan = plans.Items[i]
		}
		return i >= 0, nil
	})
	m.syncOnce(namespace)
	if phase, err := m.releasePhase(m.Context(), namespace, release); err != nil || phase != "" {
		m.Errorf("before its approval %s is %s, error %v", release, phase, err)
	}
	return plan
}

// syncOnce runs OLM once more.
func (m *lifecycleManager) syncOnce(namespace string) {
	m.Helper()
	requireNoError(m.T, m.player.Sync(m.Context(), namespace))
}

func (m *lifecycleManager) approvePlan(plan *v1alpha1.InstallPlan) {
	m.Helper()
	requireNoError(m.T, m.client.Patch(m.Context(), plan, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"approved":true}}`))))
}

// offerRelease replaces the catalog by a catalog that contains only a later release.
func (m *lifecycleManager) offerRelease(version string) *fakeolm.Bundle {
	m.Helper()
	next, err := m.bundle.As(version)
	requireNoError(m.T, err)
	m.player.Bundles[next.Version.Name] = next
	text, err := os.ReadFile(catalogFile)
	requireNoError(m.T, err)
	m.player.Images[catalogImage], err = fakeolm.ParseCatalog(bytes.ReplaceAll(text, []byte(m.bundle.Version.Spec.Version.String()), []byte(version)))
	requireNoError(m.T, err)
	return next
}

// conditionName returns the name of the OperatorCondition that the operator's pod uses.
func (m *lifecycleManager) conditionName(namespace string) string {
	m.Helper()
	deployment := &appsv1.Deployment{}
	requireNoError(m.T, m.env.Client.Get(m.Context(), client.ObjectKeyFromObject(m.operatorDeployment(namespace)), deployment))
	env := deployment.Spec.Template.Spec.Containers[0].Env
	i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == operatorcondition.NameVariable })
	if i < 0 {
		m.Fatalf("its pod has no variable %s", operatorcondition.NameVariable)
	}
	return env[i].Value
}

// setUpgradeable reports through the OperatorCondition whether the operator may be replaced.
func (m *lifecycleManager) setUpgradeable(namespace string, status metav1.ConditionStatus) {
	m.Helper()
	scheme := runtime.NewScheme()
	requireNoError(m.T, operatorcondition.AddToScheme(scheme))
	c, err := client.New(m.env.Cluster().Config, client.Options{Scheme: scheme})
	requireNoError(m.T, err)
	writer := operatorcondition.NewWriter(c, c, namespace, m.conditionName(namespace))
	requireNoError(m.T, writer.Set(m.Context(), metav1.Condition{Type: operatorsv2.Upgradeable, Status: status,
		Reason: "Disrupting", Message: "a node is being changed"}))
}

// The bundle of the repository is tested with an administrator's operations on a Subscription. lab/fakeolm simulates
// OLM.
func TestSubscription_InstallsAndUpgradesOperator(t *testing.T) {
	t.Parallel()
	r := e2e.Boot(t, testenv.Options{Hosts: testenv.Hosts(1), PayloadDir: files.Directory(t),
		ControlPlane: cluster.Options{Profile: cluster.OpenShift}})
	m := newLifecycleManager(t, r)
	const namespace = "windows-manual"
	present := m.bundle.Version.Name

	//
	t.Run("with approval Manual nothing is installed before somebody approves", func(t *testing.T) {
		m := m.forSubtest(t)
		m.createSubscription(namespace, withApprovalMode(t, "Manual"))
		m.approvePlan(m.waitForApproval(namespace, present))
		m.waitForPhase(namespace, present, succeeded)
	})
	// D-6
	t.Run("the columns of oc get csv are filled", func(t *testing.T) {
		csv := &v1alpha1.ClusterServiceVersion{}
		requireNoError(t, m.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: present}, csv))
		if csv.Name != "windows-machine-config-operator.v"+csv.Spec.Version.String() || csv.Spec.Replaces != "" ||
			csv.Spec.DisplayName != "Windows Machine Config Operator" || csv.Status.Phase != "Succeeded" {
			t.Errorf("got %s %q %s %q %s", csv.Name, csv.Spec.DisplayName, csv.Spec.Version, csv.Spec.Replaces, csv.Status.Phase)
		}
	})
	next := m.offerRelease("12.99.0").Version.Name
	//
	t.Run("an upgrade waits for its approval too, and then for a node that is being changed", func(t *testing.T) {
		m := m.forSubtest(t)
		m.setUpgradeable(namespace, metav1.ConditionFalse)
		m.approvePlan(m.waitForApproval(namespace, next))
		m.waitForPhase(namespace, next, "Pending OperatorConditionNotUpgradeable")
		m.syncOnce(namespace)
		if phase, err := m.releasePhase(t.Context(), namespace, present); err != nil || phase != succeeded {
			t.Errorf("the present release is %s, error %v", phase, err)
		}
		if name := m.conditionName(namespace); name != present {
			t.Errorf("the pod is already that of %s", name)
		}
	})
	//
	t.Run("the new release replaces the present one, and takes its rights away", func(t *testing.T) {
		m := m.forSubtest(t)
		m.setUpgradeable(namespace, metav1.ConditionTrue)
		m.waitForPhase(namespace, next, succeeded)
		m.waitForPhase(namespace, present, "")
		if name := m.conditionName(namespace); name != next {
			t.Errorf("the pod reports by %s", name)
		}
		for _, object := range m.bundleObjects(namespace) {
			if kind := object.GetKind(); kind == "ClusterRole" || kind == "ClusterRoleBinding" {
				m.syncUntil(namespace, kind+" "+object.GetName()+" is gone", func(ctx context.Context) (bool, error) {
					err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
					return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
				})
			}
		}
		csv := &v1alpha1.ClusterServiceVersion{}
		requireNoError(t, m.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: next}, csv))
		if csv.Spec.Replaces != present {
			t.Errorf("it replaces %q", csv.Spec.Replaces)
		}
	})
	//
	t.Run("with approval Automatic a catalog of one's own brings it, as soon as it is there", func(t *testing.T) {
		m := m.forSubtest(t)
		const namespace = "windows-automatic"
		m.createSubscription(namespace, func(object *unstructured.Unstructured) {
			withApprovalMode(t, "Automatic")(object)
			if object.GetKind() == "Subscription" {
				requireNoError(t, unstructured.SetNestedField(object.Object, "mirrored", "spec", "source"))
			}
		})
		m.syncOnce(namespace)
		var plans v1alpha1.InstallPlanList
		if err := m.client.List(t.Context(), &plans, client.InNamespace(namespace)); err != nil || len(plans.Items) > 0 {
			t.Errorf("without the catalog there is an InstallPlan %+v, error %v", plans.Items, err)
		}
		m.createCatalogSource("mirrored", catalogImage)
		m.waitForPhase(namespace, next, succeeded)
	})
	// R-008, D-5
	t.Run("for all namespaces, or another one, it is refused until the OperatorGroup is corrected", func(t *testing.T) {
		for name, targets := range map[string][]string{"windows-all": nil, "windows-another": {"default"},
			"windows-several": {"windows-several", "default"}} {
			m := m.forSubtest(t)
			m.createSubscription(name, func(object *unstructured.Unstructured) {
				if object.GetKind() == "OperatorGroup" {
					unstructured.RemoveNestedField(object.Object, "spec", "targetNamespaces")
					if targets != nil {
						requireNoError(t, unstructured.SetNestedStringSlice(object.Object, targets, "spec", "targetNamespaces"))
					}
				}
			})
			m.waitForPhase(name, next, "Failed UnsupportedOperatorGroup")
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(m.operatorDeployment(name)), &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
				t.Errorf("in %s there is a Deployment, or error %v", name, err)
			}
			m.createSubscription(name, func(*unstructured.Unstructured) {})
			m.waitForPhase(name, next, succeeded)
		}
	})
	//
	t.Run("the community's package is installed by a Subscription to its catalog", func(t *testing.T) {
		m := m.forSubtest(t)
		const namespace, pkg = "windows-community", "community-windows-machine-config-operator"
		release := m.addCommunity()
		m.createSubscription(namespace, func(object *unstructured.Unstructured) {
			if object.GetKind() == "Subscription" {
				requireNoError(t, unstructured.SetNestedField(object.Object, "community-operators", "spec", "source"))
				requireNoError(t, unstructured.SetNestedField(object.Object, pkg, "spec", "name"))
			}
		})
		m.waitForPhase(namespace, release, succeeded)
		requireNoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(m.operatorDeployment(namespace)), &appsv1.Deployment{}))
	})
}

// addCommunity writes bundle and catalog of the community's flavor, adds them to the cluster, and returns the
// release name.
func (m *lifecycleManager) addCommunity() string {
	m.Helper()
	out := m.TempDir()
	write := exec.CommandContext(m.Context(), "go", "run", "./hack/bundle", "-flavor", "community", "-out", out,
		"-version", m.bundle.Version.Spec.Version.String())
	write.Dir = ".."
	if output, err := write.CombinedOutput(); err != nil {
		m.Fatalf("%v: %s", err, output)
	}
	bundle, err := fakeolm.Read(filepath.Join(out, "bundle", "manifests"))
	requireNoError(m.T, err)
	catalog, err := fakeolm.ReadCatalog(filepath.Join(out, "catalog", "catalog.yaml"))
	requireNoError(m.T, err)
	const image = "registry.example.com/community:v1"
	m.player.Images[image], m.player.Bundles[bundle.Version.Name] = catalog, bundle
	m.createCatalogSource("community-operators", image)
	return bundle.Version.Name
}

// forSubtest returns the administrator for a subtest.
func (m *lifecycleManager) forSubtest(t *testing.T) *lifecycleManager {
	same := *m
	same.T = t
	return &same
}
