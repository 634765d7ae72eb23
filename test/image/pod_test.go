package image

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// operatorName is the name of the Deployment and of the ServiceAccount.
const operatorName = "windows-machine-config-operator"

// tokens is the directory with the ServiceAccount credentials in every pod.
const tokens = "/var/run/secrets/kubernetes.io/serviceaccount"

// operatorDeployment returns the operator's Deployment from the API server.
func operatorDeployment(t *testing.T, r *testenv.Environment) appsv1.Deployment {
	t.Helper()
	return deploymentIn(t, r, r.Namespace())
}

func deploymentIn(t *testing.T, r *testenv.Environment, namespace string) appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: operatorName}, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// containerOf returns the container of a pod as a kubelet creates it, with the image's entry point and the pod's
// arguments, variables, volumes and permissions.
func containerOf(t *testing.T, r *testenv.Environment, image v1.Image, pod corev1.PodSpec) container {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	spec := pod.Containers[0]
	entry := config.Config.Entrypoint
	if len(spec.Command) > 0 {
		entry = spec.Command
	}
	s, all := spec.SecurityContext, pod.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || all == nil || all.RunAsNonRoot == nil || !*all.RunAsNonRoot {
		t.Fatalf("the manifest leaves open what the container may do: %+v, %+v", s, all)
	}
	c := container{
		ReadOnly: *s.ReadOnlyRootFilesystem, User: imageUser(t, config.Config), Entry: entry, Args: spec.Args,
		Dir:    config.Config.WorkingDir,
		Env:    append(append([]string{}, config.Config.Env...), containerVariables(t, r, spec)...),
		Mounts: []mount{{Source: writeCredentials(t, r, r.Namespace(), pod.ServiceAccountName), Target: tokens, ReadOnly: true}},
	}
	for _, m := range spec.VolumeMounts {
		c.Mounts = append(c.Mounts, mount{Source: volumeDirectory(t, pod, m.Name), Target: m.MountPath, ReadOnly: m.ReadOnly})
	}
	return c
}

// apiServer returns the variables with the address of the API server in a pod.
func apiServer(t *testing.T, r *testenv.Environment) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(strings.TrimPrefix(r.Config.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
}

// containerVariables returns the container's variables and the variables with the API server's address.
func containerVariables(t *testing.T, r *testenv.Environment, spec corev1.Container) []string {
	t.Helper()
	all := apiServer(t, r)
	for _, v := range spec.Env {
		value := v.Value
		if from := v.ValueFrom; from != nil {
			if from.FieldRef == nil || from.FieldRef.FieldPath != "metadata.namespace" {
				t.Fatalf("the test does not know the variable %s", v.Name)
			}
			value = r.Namespace()
		}
		all = append(all, fmt.Sprintf("%s=%s", v.Name, value))
	}
	return all
}

// volumeDirectory returns a directory for an empty volume, or for an optional Secret that does not exist.
func volumeDirectory(t *testing.T, pod corev1.PodSpec, name string) string {
	t.Helper()
	for _, v := range pod.Volumes {
		if v.Name != name {
			continue
		}
		if v.EmptyDir == nil && (v.Secret == nil || v.Secret.Optional == nil || !*v.Secret.Optional) {
			t.Fatalf("the test does not know the volume %s", name)
		}
		return newWritableDirectory(t)
	}
	t.Fatalf("the pod has no volume %s", name)
	return ""
}

// newWritableDirectory returns a directory that every user may write to, like a kubelet's empty volume.
func newWritableDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeCredentials writes the credentials that a pod gets for its ServiceAccount.
func writeCredentials(t *testing.T, r *testenv.Environment, namespace, account string) string {
	t.Helper()
	config, err := r.Cluster().ServiceAccountConfig(t.Context(), namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"token": config.BearerToken, "ca.crt": string(config.CAData),
		"namespace": namespace} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// probeURL returns the URL of a container's probe.
func probeURL(t *testing.T, spec corev1.Container, p *corev1.Probe) string {
	t.Helper()
	for _, port := range spec.Ports {
		if port.Name == p.HTTPGet.Port.String() {
			return fmt.Sprintf("http://127.0.0.1:%d%s", port.ContainerPort, p.HTTPGet.Path)
		}
	}
	t.Fatalf("the container has no port %s", p.HTTPGet.Port.String())
	return ""
}
