package image

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

const ownNamespace = "windows-machine-config"

//
func TestOverlays_InstallOperator(t *testing.T) {
	r := bootLab(t, t.TempDir(), "v0")
	t.Run("on OpenShift, by make, with what only OpenShift understands", func(t *testing.T) {
		output, err := runMakeTarget(t.Context(), r, "deploy", "IMAGE=registry.example.com/wmco:dev", "OVERLAY=overlays/openshift")
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		d := operatorDeployment(t, r)
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/wmco:dev" {
			t.Errorf("it is of image %s", image)
		}
		for name, want := range map[string]string{
			"openshift.io/required-scc":               "restricted-v2",
			"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`,
			"kubectl.kubernetes.io/default-container": "manager",
		} {
			if got := d.Spec.Template.Annotations[name]; got != want {
				t.Errorf("annotation %s of its pod is %q", name, got)
			}
		}
		var namespace corev1.Namespace
		if err := r.Client.Get(t.Context(), client.ObjectKey{Name: r.Namespace()}, &namespace); err != nil {
			t.Fatal(err)
		}
		selector, has := namespace.Annotations["openshift.io/node-selector"]
		if !has || selector != "" || namespace.Annotations["workload.openshift.io/allowed"] != "management" ||
			namespace.Labels["openshift.io/cluster-monitoring"] != "true" {
			t.Errorf("annotations %v, labels %v", namespace.Annotations, namespace.Labels)
		}
	})
	t.Run("and goes again", func(t *testing.T) {
		awaitKinds(t, r)
		undeployOperator(t, r)
	})
	t.Run("without make, in a namespace of one's own, all of it", func(t *testing.T) {
		self, environment, err := asKubectl(r)
		if err != nil {
			t.Fatal(err)
		}
		output, err := runCommand(t.Context(), environment, self, "apply", "--server-side", "-k", "overlays/namespace")
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		d := deploymentIn(t, r, ownNamespace)
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/wmco:v12.0.0" {
			t.Errorf("it is of image %s", image)
		}
		var binding rbacv1.RoleBinding
		key := client.ObjectKey{Namespace: ownNamespace, Name: "windows-machine-config-operator"}
		if err := r.Client.Get(t.Context(), key, &binding); err != nil || binding.Subjects[0].Namespace != ownNamespace {
			t.Errorf("its rights are for %+v, error %v", binding.Subjects, err)
		}
		key.Name = "prometheus-k8s"
		if err := r.Client.Get(t.Context(), key, &binding); err != nil || binding.Subjects[0].Namespace != "openshift-monitoring" {
			t.Errorf("Prometheus' rights are for %+v, error %v", binding.Subjects, err)
		}
	})
	t.Run("a second one in another namespace is refused, and so is taking that away", func(t *testing.T) {
		for _, target := range []string{"deploy", "undeploy"} {
			output, err := runMakeTarget(t.Context(), r, target, "IMAGE=registry.example.com/wmco:dev")
			if err == nil || !strings.Contains(output, "namespace "+ownNamespace+" has an operator already") {
				t.Errorf("make %s: error %v: %s", target, err, output)
			}
		}
		var binding rbacv1.ClusterRoleBinding
		key := client.ObjectKey{Name: "windows-machine-config-operator"}
		if err := r.Client.Get(t.Context(), key, &binding); err != nil || binding.Subjects[0].Namespace != ownNamespace {
			t.Errorf("the cluster-wide rights are for %+v, error %v", binding.Subjects, err)
		}
	})
	t.Run("an overlay that is not there is refused in one sentence", func(t *testing.T) {
		output, err := runMakeTarget(t.Context(), r, "deploy", "IMAGE=registry.example.com/wmco:dev", "OVERLAY=overlays/none")
		if err == nil || !strings.Contains(output, "OVERLAY=overlays/none has no kustomization.yaml") {
			t.Errorf("error %v: %s", err, output)
		}
	})
}

// awaitKinds waits until the API server serves the operator's kinds. If a definition is deleted before its storage
// was read once, it stays for five minutes, until the API server retries.
func awaitKinds(t *testing.T, r *testenv.Environment) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, e2e.WaitTimeout, true,
		func(ctx context.Context) (bool, error) {
			last = errors.Join(r.Client.List(ctx, &v1alpha1.WindowsInstanceList{}),
				r.Client.List(ctx, &v1alpha1.WindowsDisruptionPolicyList{}))
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("the operator's kinds are not served: %v: %v", err, last)
	}
}
