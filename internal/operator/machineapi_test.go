package operator_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
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
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// fastTickerClock is a clock with tickers that tick a thousand times as often.
type fastTickerClock struct{ clock.RealClock }

func (fastTickerClock) NewTicker(d time.Duration) clock.Ticker {
	return clock.RealClock{}.NewTicker(d / 1000)
}

// installation is a cluster with an installed operator.
type installation struct {
	*testing.T
	*testenv.Environment
	admin client.Client
}

func newInstallation(t *testing.T) installation {
	t.Helper()
	r, err := testenv.New(t.Context(), testenv.Options{Cluster: lab.Cluster(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := errors.Join(machinev1beta1.Install(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(r.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.InstallOperator(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	return installation{t, r, admin}
}

// runUntilTestEnd runs the operator until the test ends.
func (i installation) runUntilTestEnd(adjust func(*operator.Config)) {
	i.Helper()
	running, err := i.RunOperator(adjust)
	if err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() {
		if err := running.Stop(); err != nil {
			i.Error(err)
		}
	})
}

// servesListedHosts checks that the operator tries to reach a host of the ConfigMap.
func (i installation) servesListedHosts() {
	i.Helper()
	const host = "10.1.42.1"
	if err := i.SetInstances(i.Context(), map[string]string{host: "username=Administrator"}); err != nil {
		i.Fatal(err)
	}
	if err := i.CreateKey(i.Context()); err != nil {
		i.Fatal(err)
	}
	instance := &v1alpha1.WindowsInstance{}
	waitUntil(i.T, "an attempt to reach the listed host", func(ctx context.Context) (bool, error) {
		err := i.admin.Get(ctx, client.ObjectKey{Namespace: testenv.Namespace, Name: hostlist.InstanceName(host)}, instance)
		return instance.Status.Summary == string(remote.ReasonUnreachable), client.IgnoreNotFound(err)
	})
}

// servesMachines checks that a Machine becomes an instance.
func (i installation) servesMachines() {
	i.Helper()
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace,
		Name:   "win-abcde",
		Labels: map[string]string{v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows}}}
	waitUntil(i.T, "a Machine can be made", func(ctx context.Context) (bool, error) {
		return i.admin.Create(ctx, machine) == nil, nil // served after a short delay
	})
	i.Cleanup(func() {
		if err := i.admin.Delete(context.WithoutCancel(i.Context()), machine); err != nil {
			i.Error(err)
		}
	})
	before := machine.DeepCopy()
	phase := machinev1beta1.PhaseProvisioned
	machine.Status.Phase = &phase
	machine.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.42.2"}}
	if err := i.admin.Status().Patch(i.Context(), machine, client.MergeFrom(before)); err != nil {
		i.Fatal(err)
	}
	awaitInstance(i.T, i.admin, machine.Name)
}

// an operator on a cluster without the Machine API starts and serves hosts of the ConfigMap. When the
// Machine API is installed, its Machines become instances without a restart.
func TestMachineAPI_OptionalAtStartUsedWhenInstalled(t *testing.T) {
	i := newInstallation(t)
	definition := deleteDefinition(t, i.admin, "machines.machine.openshift.io")
	i.runUntilTestEnd(func(c *operator.Config) { c.Clock = fastTickerClock{} })
	i.servesListedHosts()
	if err := i.admin.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	i.servesMachines()
}

// a Machine API that is removed while the operator starts blocks nothing else, and its Machines become
// instances when the Machine API is restored.
func TestMachineAPI_UnreadableMachinesBlockNothingElse(t *testing.T) {
	i := newInstallation(t)
	var readable atomic.Bool
	i.runUntilTestEnd(func(c *operator.Config) {
		c.RESTConfig.Wrap(func(api http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if !readable.Load() && strings.HasPrefix(r.URL.Path, "/apis/machine.openshift.io/v1beta1/") {
					return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
				}
				return api.RoundTrip(r)
			})
		})
	})
	i.servesListedHosts()
	readable.Store(true)
	i.servesMachines()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// deleteDefinition deletes a definition with its objects, and returns the definition in a form that can be created
// again.
func deleteDefinition(t *testing.T, admin client.Client, name string) *unstructured.Unstructured {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, definition); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), definition.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	deleted := definition.DeepCopy()
	waitUntil(t, name+" is gone", func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKey{Name: name}, deleted)
		return err != nil && client.IgnoreNotFound(err) == nil, nil
	})
	definition.SetResourceVersion("")
	definition.SetUID("")
	unstructured.RemoveNestedField(definition.Object, "status")
	return definition
}

func awaitInstance(t *testing.T, admin client.Client, name string) {
	t.Helper()
	waitUntil(t, "WindowsInstance "+name, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKey{Namespace: testenv.Namespace, Name: name}, &v1alpha1.WindowsInstance{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

func waitUntil(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
