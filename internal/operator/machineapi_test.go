package operator_test

import (
	"context"
	"os"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/rig"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// impatient is a clock whose tickers tick a thousand times as often.
type impatient struct{ clock.RealClock }

func (impatient) NewTicker(d time.Duration) clock.Ticker {
	return clock.RealClock{}.NewTicker(d / 1000)
}

// an operator on a cluster without the Machine API starts and serves hosts of the ConfigMap; when the Machine API comes, its
// Machines become instances, without a restart.
func TestAClusterWithoutTheMachineAPI(t *testing.T) {
	c := lab.Cluster(t)
	r, err := rig.New(t.Context(), rig.Options{Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := machinev1beta1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(r.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	definition := takeAway(t, admin, "machines.machine.openshift.io")

	if _, err := r.InstallOperator(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	running, err := r.RunOperator(func(c *operator.Config) { c.Clock = impatient{} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	const host = "10.1.42.1"
	if err := r.SetInstances(t.Context(), map[string]string{host: "username=Administrator"}); err != nil {
		t.Fatal(err)
	}
	awaitInstance(t, admin, policy.InstanceName(host))

	if err := admin.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: "win-abcde",
		Labels: map[string]string{v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows}}}
	await(t, "a Machine can be made", func(ctx context.Context) (bool, error) {
		return admin.Create(ctx, machine) == nil, nil // served a moment after its definition
	})
	before := machine.DeepCopy()
	phase := machinev1beta1.PhaseProvisioned
	machine.Status.Phase = &phase
	machine.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.42.2"}}
	if err := admin.Status().Patch(t.Context(), machine, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	awaitInstance(t, admin, "win-abcde")
}

// takeAway deletes a definition with its objects, and returns it as it can be made again.
func takeAway(t *testing.T, admin client.Client, name string) *unstructured.Unstructured {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, definition); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), definition.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	gone := definition.DeepCopy()
	await(t, name+" is gone", func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKey{Name: name}, gone)
		return err != nil && client.IgnoreNotFound(err) == nil, nil
	})
	definition.SetResourceVersion("")
	definition.SetUID("")
	unstructured.RemoveNestedField(definition.Object, "status")
	return definition
}

func awaitInstance(t *testing.T, admin client.Client, name string) {
	t.Helper()
	await(t, "WindowsInstance "+name, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKey{Namespace: rig.Namespace, Name: name}, &v1alpha1.WindowsInstance{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

func await(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
