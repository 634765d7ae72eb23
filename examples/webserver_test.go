package examples_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// webServerCommand returns the exact command of the guides' web server.
func webServerCommand(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/win-webserver-command.txt")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"powershell.exe", "-command", string(text[:len(text)-1])}
}

// decodeObject converts an example to a typed object. The type must have all fields of the example.
func decodeObject[T any](t *testing.T, object *unstructured.Unstructured) T {
	t.Helper()
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object,
		&typed, true); err != nil {
		t.Fatal(err)
	}
	return typed
}

//
func TestWebServer_MatchesGuides(t *testing.T) {
	want := appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "win-webserver", Labels: map[string]string{"app": "win-webserver"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "win-webserver"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Name: "win-webserver", Labels: map[string]string{"app": "win-webserver"}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "windowswebserver", Image: "mcr.microsoft.com/windows/servercore:ltsc2019", ImagePullPolicy: "IfNotPresent",
						Command: webServerCommand(t),
						SecurityContext: &corev1.SecurityContext{
							RunAsNonRoot:   ptr.To(false),
							WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: ptr.To("ContainerAdministrator")},
						},
					}},
					OS: &corev1.PodOS{Name: "windows"}, RuntimeClassName: ptr.To("windows2019"),
				},
			},
		},
	}
	if diff := cmp.Diff(want, decodeObject[appsv1.Deployment](t, read(t, "win-webserver.yaml"))); diff != "" {
		t.Errorf("the guides have (-), and the example (+):\n%s", diff)
	}
}

//
func TestRuntimeClasses_MatchGuides(t *testing.T) {
	for example, c := range map[string]struct{ name, build string }{
		"runtime-class.yaml":      {"windows2019", "10.0.17763"},
		"runtime-class-2022.yaml": {"windows2022", "10.0.20348"},
		"runtime-class-2025.yaml": {"windows2025", "10.0.26100"},
	} {
		t.Run(example, func(t *testing.T) {
			want := nodev1.RuntimeClass{
				TypeMeta:   metav1.TypeMeta{APIVersion: "node.k8s.io/v1", Kind: "RuntimeClass"},
				ObjectMeta: metav1.ObjectMeta{Name: c.name},
				Handler:    "runhcs-wcow-process",
				Scheduling: &nodev1.Scheduling{
					NodeSelector: map[string]string{"kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64",
						"node.kubernetes.io/windows-build": c.build},
					Tolerations: []corev1.Toleration{
						{Effect: "NoSchedule", Key: "os", Operator: "Equal", Value: "windows"},
						{Effect: "NoSchedule", Key: "os", Operator: "Equal", Value: "Windows"},
					},
				},
			}
			if diff := cmp.Diff(want, decodeObject[nodev1.RuntimeClass](t, read(t, example))); diff != "" {
				t.Errorf("the guides have (-), and the example (+):\n%s", diff)
			}
		})
	}
}

//
func TestWebServer_LegacyExampleRunsSameCommand(t *testing.T) {
	deployment := decodeObject[appsv1.Deployment](t, read(t, "win-webserver-tolerations.yaml"))
	spec := deployment.Spec.Template.Spec
	if diff := cmp.Diff(webServerCommand(t), spec.Containers[0].Command); diff != "" {
		t.Errorf("the guides have (-), and the example (+):\n%s", diff)
	}
	if user := spec.Containers[0].SecurityContext.WindowsOptions.RunAsUserName; ptr.Deref(user,
		"") != "ContainerAdministrator" || ptr.Deref(deployment.Spec.Replicas, 0) != 1 {
		t.Errorf("%d run as %v", ptr.Deref(deployment.Spec.Replicas, 0), user)
	}
	if diff := cmp.Diff([]corev1.Toleration{{Key: "os", Value: "Windows", Effect: "NoSchedule"}},
		spec.Tolerations); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"kubernetes.io/os": "windows"}, spec.NodeSelector); diff != "" {
		t.Error(diff)
	}
}

//
func TestService_IsLoadBalancer(t *testing.T) {
	want := corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: "win-webserver", Labels: map[string]string{"app": "win-webserver"}},
		Spec: corev1.ServiceSpec{
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}},
			Selector: map[string]string{"app": "win-webserver"}, Type: "LoadBalancer",
		},
	}
	if diff := cmp.Diff(want, decodeObject[corev1.Service](t, read(t, "win-webserver-service.yaml"))); diff != "" {
		t.Errorf("the guides have (-), and the example (+):\n%s", diff)
	}
}
