package admission_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/admission"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// fixture is a real API server, and an operator that runs with only the rights of deploy/.
type fixture struct {
	*testing.T
	env       *testenv.Environment
	namespace string
	// admin has all rights, operator only the rights of the ServiceAccount.
	admin, operator client.Client
	running         *testenv.Operator
	scheme          *runtime.Scheme
}

// Names of Nodes.
const (
	ownNode   = "win-a"
	otherNode = "win-b"
)

// newFixture starts an operator in a namespace ("" for the default namespace), and waits until its policies are
// in force.
func newFixture(t *testing.T, namespace string) *fixture {
	t.Helper()
	r, err := testenv.New(t.Context(), testenv.Options{Cluster: lab.Cluster(t)})
	requireNoError(t, err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{T: t, env: r, scheme: runtime.NewScheme()}
	requireNoError(t, errors.Join(clientgoscheme.AddToScheme(f.scheme), v1alpha1.AddToScheme(f.scheme),
		machinev1beta1.Install(f.scheme)))
	f.admin = f.newClient(r.Config)
	config, err := r.InstallOperator(t.Context(), namespace)
	requireNoError(t, err)
	f.namespace, f.operator = r.Namespace(), f.newClient(config)
	f.running, err = r.RunOperator()
	requireNoError(t, err)
	requireNoError(t, client.IgnoreAlreadyExists(f.admin.Create(t.Context(), linuxNode("probe")))) // may exist already
	f.waitForPolicies()
	return f
}

// waitForPolicies waits until the API server enforces the policy for kubelets, which is written last, and the policy is
// owned by this operator.
func (f *fixture) waitForPolicies() {
	f.Helper()
	f.waitUntil("the policies are in force", func(ctx context.Context) (bool, error) {
		binding := bindingOf(admission.Kubelets)
		if err := f.admin.Get(ctx, client.ObjectKeyFromObject(binding), binding); err != nil || len(binding.OwnerReferences) == 0 ||
			binding.OwnerReferences[0].Name != f.namespace {
			return false, client.IgnoreNotFound(err)
		}
		kubelet := f.newClientAs("system:node:probe", "system:nodes")
		err := kubelet.Patch(ctx, linuxNode("probe"), newMergePatch(`{"metadata": {"annotations": {%q: "b"}}}`, v1alpha1.AnnotationInstance), client.DryRunAll)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"), nil
	})
}

func (f *fixture) newClient(config *rest.Config) client.Client {
	f.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: f.scheme})
	requireNoError(f.T, err)
	return c
}

// newClientAs returns a client that is authenticated as another user.
func (f *fixture) newClientAs(user string, groups ...string) client.Client {
	f.Helper()
	return f.newClient(f.impersonationConfig(user, groups...))
}

func (f *fixture) impersonationConfig(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(f.env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return config
}

// createObjects creates objects as the administrator, and deletes them after the test.
func (f *fixture) createObjects(objects ...client.Object) {
	f.Helper()
	for _, object := range objects {
		requireNoError(f.T, f.admin.Create(f.Context(), object))
		f.Cleanup(func() {
			if err := client.IgnoreNotFound(f.admin.Delete(context.WithoutCancel(f.Context()), object)); err != nil {
				f.Error(err)
			}
		})
	}
}

func (f *fixture) waitUntil(what string, holds func(context.Context) (bool, error)) {
	f.Helper()
	if err := wait.PollUntilContextTimeout(f.Context(), 20*time.Millisecond, 3*time.Minute, true, holds); err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

// forSubtest returns the same fixture for a subtest.
func (f *fixture) forSubtest(t *testing.T) *fixture {
	part := *f
	part.T = t
	return &part
}

// policyNames returns the names of all policies.
func policyNames() []string {
	var names []string
	for _, guard := range admission.Guards() {
		names = append(names, guard.Policy.Name)
	}
	return names
}

func windowsNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelOSStable: "windows"}}}
}

func linuxNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelOSStable: "linux"}}}
}

// newMergePatch returns a merge patch from a formatted text.
func newMergePatch(format string, values ...any) client.Patch {
	return client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, format, values...))
}

// expectDenied checks that an error comes from an admission policy.
func expectDenied(t *testing.T, err error, policy string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("the answer is %v, want that it is forbidden", err)
		return
	}
	if message := err.Error(); !strings.Contains(message, "ValidatingAdmissionPolicy '"+policy+"'") {
		t.Errorf("it is forbidden by something else than policy %s: %v", policy, err)
	}
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func policyOf(name string) *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func bindingOf(name string) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
