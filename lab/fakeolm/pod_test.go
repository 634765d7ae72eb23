package fakeolm_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/windows-machine-config/wmco/lab/fakeolm"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

const bundleManifests = "../../deploy/olm/bundle/manifests"

// objectsByMethod returns the objects in the cluster by installation method.
func objectsByMethod(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	manifests, err := testenv.Manifests(testenv.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := fakeolm.Read(bundleManifests)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := bundle.Objects(testenv.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]*unstructured.Unstructured{"from the manifests": manifests,
		"by OLM": append(objects, bundle.ClusterWide()...)}
}

// findObject returns the only object of a kind with a name prefix.
func findObject[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) T {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && strings.HasPrefix(o.GetName(), name)
	})
	if i < 0 {
		t.Fatalf("there is no %s %s", kind, name)
	}
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[i].Object,
		&typed, true); err != nil {
		t.Fatal(err)
	}
	return typed
}

func TestOperatorPod_HasMinimalPrivileges(t *testing.T) {
	for way, objects := range objectsByMethod(t) {
		t.Run("installed "+way, func(t *testing.T) {
			deployment := findObject[appsv1.Deployment](t, objects, "Deployment", "windows-machine-config-operator")
			pod := deployment.Spec.Template.Spec
			if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
				t.Fatalf("it has %d containers", len(pod.Containers)+len(pod.InitContainers))
			}
			container := pod.Containers[0]
			checkRestricted(t, pod, container)
			for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if quantity := container.Resources.Requests[resource]; quantity.IsZero() {
					t.Errorf("it asks for no %s", resource)
				}
			}
			for _, variable := range container.Env {
				if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
					t.Errorf("the variable %s is a secret", variable.Name)
				}
			}
		})
	}
}

// checkRestricted checks the pod security standard that the namespace enforces, and stricter settings.
func checkRestricted(t *testing.T, pod corev1.PodSpec, container corev1.Container) {
	t.Helper()
	of, in := pod.SecurityContext, container.SecurityContext
	if of == nil || in == nil {
		t.Fatal("pod or container has no security context")
	}
	for what, holds := range map[string]bool{
		"it may run as root": of.RunAsNonRoot != nil && *of.RunAsNonRoot,
		"it has no seccomp profile": of.SeccompProfile != nil &&
			of.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"it may gain privileges":              in.AllowPrivilegeEscalation != nil && !*in.AllowPrivilegeEscalation,
		"it is privileged":                    in.Privileged == nil || !*in.Privileged,
		"its root file system can be written": in.ReadOnlyRootFilesystem != nil && *in.ReadOnlyRootFilesystem,
		"it has capabilities": in.Capabilities != nil && slices.Equal(in.Capabilities.Drop,
			[]corev1.Capability{"ALL"}) && len(in.Capabilities.Add) == 0,
		"it sees the node's processes":         !pod.HostPID && !pod.HostIPC,
		"it uses the node's network":           !pod.HostNetwork,
		"a container undoes what the pod says": in.RunAsNonRoot == nil && in.SeccompProfile == nil && in.RunAsUser == nil,
	} {
		if !holds {
			t.Error(what)
		}
	}
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			t.Errorf("volume %s is a folder of the node", volume.Name)
		}
	}
	for _, port := range container.Ports {
		if port.HostPort != 0 {
			t.Errorf("port %s is one of the node", port.Name)
		}
	}
}

func TestOperatorPod_HasProbesAndMetrics(t *testing.T) {
	for way, objects := range objectsByMethod(t) {
		t.Run("installed "+way, func(t *testing.T) {
			deployment := findObject[appsv1.Deployment](t, objects, "Deployment", "windows-machine-config-operator")
			pod := deployment.Spec.Template.Spec
			container := pod.Containers[0]
			for path, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe,
				"/readyz": container.ReadinessProbe} {
				if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != "probes" ||
					probe.TimeoutSeconds < 2 {
					t.Errorf("the probe of %s is %+v", path, probe)
				}
			}
			service := findObject[corev1.Service](t, objects, "Service", "windows-machine-config-operator-metrics")
			for key, value := range service.Spec.Selector {
				if deployment.Spec.Template.Labels[key] != value {
					t.Errorf("the Service selects %s=%s, the pod has %v", key, value, deployment.Spec.Template.Labels)
				}
			}
			if len(service.Spec.Selector) == 0 || len(service.Spec.Ports) != 1 {
				t.Fatalf("the Service is %+v", service.Spec)
			}
			to := service.Spec.Ports[0]
			i := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == to.TargetPort.StrVal })
			if i < 0 || container.Ports[i].ContainerPort != to.Port || !slices.Contains(container.Args,
				"--metrics-bind-address=:8443") || to.Port != 8443 {
				t.Errorf("the Service has %+v, the container %+v and %v", to, container.Ports, container.Args)
			}
			secret := service.Annotations["service.beta.openshift.io/serving-cert-secret-name"]
			if mountedSecret(pod, container, "--metrics-cert-dir=") != secret || secret == "" {
				t.Errorf("the certificate is in Secret %q, and %q is mounted", secret,
					mountedSecret(pod, container, "--metrics-cert-dir="))
			}
		})
	}
}

// mountedSecret returns the optional Secret that is mounted at the directory in an argument.
func mountedSecret(pod corev1.PodSpec, container corev1.Container, argument string) string {
	for _, mount := range container.VolumeMounts {
		if !slices.Contains(container.Args, argument+mount.MountPath) || !mount.ReadOnly {
			continue
		}
		for _, volume := range pod.Volumes {
			if volume.Name == mount.Name && volume.Secret != nil && volume.Secret.Optional != nil && *volume.Secret.Optional {
				return volume.Secret.SecretName
			}
		}
	}
	return ""
}

// There is no webhook: the operator does not intercept requests to the API server, and no webhook certificate
// is needed.
func TestManifests_HaveNoWebhook(t *testing.T) {
	for way, objects := range objectsByMethod(t) {
		for _, object := range objects {
			if strings.Contains(object.GetKind(), "Webhook") {
				t.Errorf("installed %s: %s %s", way, object.GetKind(), object.GetName())
			}
		}
	}
}
