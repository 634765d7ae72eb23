package fakeopenshift

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// settings is a fixture that changes settings.
type settings struct {
	fixture
	dynamic dynamic.Interface
}

func startSettings(t *testing.T) settings {
	t.Helper()
	f := start(t, Options{})
	client, err := dynamic.NewForConfig(f.config)
	if err != nil {
		t.Fatal(err)
	}
	return settings{f, client}
}

// changeObject merges a patch into an object and reverts it after the test.
func (s settings) changeObject(resource schema.GroupVersionResource, name, patch, back string) {
	s.t.Helper()
	do := func(ctx context.Context, patch string) {
		if _, err := s.dynamic.Resource(resource).Patch(ctx, name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	do(s.t.Context(), patch)
	s.t.Cleanup(func() { do(context.Background(), back) })
}

func (s settings) configMap(namespace, name string, data map[string]string) {
	s.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	if _, err := s.admin.CoreV1().ConfigMaps(namespace).Create(s.t.Context(), object, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = s.admin.CoreV1().ConfigMaps(namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// awaitObject waits until an object satisfies the condition.
func awaitObject[T any](s settings, what string, resource schema.GroupVersionResource, name string,
	condition func(*T) bool) {
	s.t.Helper()
	s.awaitCondition(what, func(ctx context.Context) (bool, error) {
		object, err := s.dynamic.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		var typed T
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed)
		return err == nil && condition(&typed), err
	})
}

// L-01
func TestProxySettings_MergedIntoStatus(t *testing.T) {
	s := startSettings(t)
	s.changeObject(proxyResource, theCluster,
		`{"spec":{"httpProxy":"http://proxy:3128","httpsProxy":"http://proxy:3128","noProxy":"corp.example.com"}}`,
		`{"spec":{"httpProxy":null,"httpsProxy":null,"noProxy":null}}`)
	awaitObject(s, "the status has it", proxyResource, theCluster, func(p *configv1.Proxy) bool {
		return p.Status.HTTPProxy == "http://proxy:3128" &&
			p.Status.NoProxy == ".cluster.local,.svc,10.0.0.0/16,10.128.0.0/14,127.0.0.1,172.30.0.0/16,api-int.lab.example.com,corp.example.com,localhost"
	})
	s.changeObject(proxyResource, theCluster, `{"spec":{"httpProxy":null,"httpsProxy":null}}`, `{}`)
	awaitObject(s, "the status has none", proxyResource, theCluster, func(p *configv1.Proxy) bool {
		return p.Status == configv1.ProxyStatus{}
	})
}

// L-01, L-02
func TestTrustBundle_CopiedToControllerConfig(t *testing.T) {
	s := startSettings(t)
	ca, err := newServiceCA()
	if err != nil {
		t.Fatal(err)
	}
	bundle, _, err := ca.issueCertificate("example.com")
	if err != nil {
		t.Fatal(err)
	}
	s.configMap(configNamespace, userBundle, map[string]string{bundleKey: string(bundle)})
	awaitObject(s, "the bundle is there", controllerConfigResource, controllerConfig,
		func(c *machineconfigv1.ControllerConfig) bool {
			return string(c.Spec.AdditionalTrustBundle) == string(bundle)
		})
	s.configMap(configNamespace, "proxy-ca", map[string]string{bundleKey: string(bundle)})
	s.changeObject(proxyResource, theCluster, `{"spec":{"trustedCA":{"name":"proxy-ca"}}}`, `{"spec":{"trustedCA":{"name":""}}}`)
	awaitObject(s, "both are there", controllerConfigResource, controllerConfig,
		func(c *machineconfigv1.ControllerConfig) bool {
			return string(c.Spec.AdditionalTrustBundle) == string(bundle)+string(bundle)
		})
	s.configMap(configNamespace, "registries", map[string]string{"registry.example.com..5000": "b",
		"quay.example.com": "a"})
	s.changeObject(imageResource, theCluster, `{"spec":{"additionalTrustedCA":{"name":"registries"}}}`,
		`{"spec":{"additionalTrustedCA":null}}`)
	awaitObject(s, "the registries' are there", controllerConfigResource, controllerConfig,
		func(c *machineconfigv1.ControllerConfig) bool {
			b := c.Spec.ImageRegistryBundleUserData
			return len(b) == 2 && b[0].File == "quay.example.com" && b[1].File == "registry.example.com..5000" &&
				string(b[1].Data) == "b"
		})
	for _, name := range []string{userBundle, "proxy-ca", "registries"} {
		if err := s.admin.CoreV1().ConfigMaps(configNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaitObject(s, "nothing is left", controllerConfigResource, controllerConfig,
		func(c *machineconfigv1.ControllerConfig) bool {
			return len(c.Spec.AdditionalTrustBundle)+len(c.Spec.ImageRegistryBundleUserData) == 0
		})
}

func TestNetworkSettings_MTUReported(t *testing.T) {
	s := startSettings(t)
	patch := func(mtu string) string {
		return `{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"mtu":` + mtu + `}}}}`
	}
	s.changeObject(operatorNetworkResource, theCluster, patch("1300"), patch("1400"))
	awaitObject(s, "it is the new one", configNetworkResource, theCluster, func(n *configv1.Network) bool {
		return n.Status.ClusterNetworkMTU == 1300
	})
}

//
func TestKubeletSettings_RenderedForWorkers(t *testing.T) {
	s := startSettings(t)
	var installed string
	awaitObject(s, "it is there", poolResource, workerPool, func(p *machineconfigv1.MachineConfigPool) bool {
		installed = p.Status.Configuration.Name
		return installed != ""
	})
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": machineconfigv1.SchemeGroupVersion.String(), "kind": "KubeletConfig",
		"metadata": map[string]any{"name": "more-pods"},
		"spec": map[string]any{
			"machineConfigPoolSelector": map[string]any{"matchLabels": map[string]any{"pools.operator.machineconfiguration.openshift.io/worker": ""}},
			"kubeletConfig":             map[string]any{"maxPods": int64(300)},
		},
	}}
	if _, err := s.dynamic.Resource(kubeletConfigResource).Create(t.Context(), config,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.changeObject(poolResource, workerPool, `{"spec":{"paused":true}}`, `{"spec":{"paused":false}}`)
	isOther := func(p *machineconfigv1.MachineConfigPool) bool { return p.Spec.Configuration.Name != installed }
	awaitObject(s, "the pool names another", poolResource, workerPool, isOther)
	s.changeObject(poolResource, workerPool, `{"spec":{"paused":false}}`, `{}`)
	var name string
	awaitObject(s, "the workers have it", poolResource, workerPool, func(p *machineconfigv1.MachineConfigPool) bool {
		name = p.Status.Configuration.Name
		return isOther(p) && name == p.Spec.Configuration.Name
	})
	if kubelet := s.kubeletOf(name); !strings.Contains(kubelet, "maxPods: 300") ||
		!strings.Contains(kubelet, "clusterDomain: cluster.local") {
		t.Errorf("the kubelet's configuration is\n%s", kubelet)
	}
	if err := s.dynamic.Resource(kubeletConfigResource).Delete(t.Context(), "more-pods",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitObject(s, "the workers have the first again", poolResource, workerPool,
		func(p *machineconfigv1.MachineConfigPool) bool {
			return p.Status.Configuration.Name == installed && !isOther(p)
		})
}

// kubeletOf returns the kubelet's configuration in a rendered configuration.
func (s settings) kubeletOf(name string) string {
	s.t.Helper()
	object, err := s.dynamic.Resource(machineConfigResource).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	var ignition ignitionOf
	raw, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(raw, &ignition)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range ignition.Spec.Config.Storage.Files {
		if file.Path == kubeletConfigAt {
			content, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(file.Contents.Source, dataURLBase64))
			if err != nil {
				s.t.Fatal(err)
			}
			return string(content)
		}
	}
	return ""
}

type ignitionOf struct {
	Spec struct {
		Config struct {
			Storage struct {
				Files []struct {
					Path     string
					Contents struct{ Source string }
				}
			}
		}
	}
}

func TestServiceCA_AnnotatedServiceGetsCertificate(t *testing.T) {
	f := start(t, Options{ServiceCA: true})
	services := f.admin.CoreV1().Services("default")
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics", Annotations: map[string]string{servingSecret: "metrics-tls"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 9182}}},
	}
	if _, err := services.Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = services.Delete(context.Background(), "metrics", metav1.DeleteOptions{}) })
	var first *corev1.Secret
	has := func(ctx context.Context) (bool, error) {
		secret, err := f.admin.CoreV1().Secrets("default").Get(ctx, "metrics-tls", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		different := err == nil && (first == nil || first.UID != secret.UID)
		first = secret
		return different, err
	}
	f.awaitCondition("the Secret is there", has)
	if err := f.admin.CoreV1().Secrets("default").Delete(t.Context(), "metrics-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.awaitCondition("a deleted Secret is made again", has)
	if err := f.admin.CoreV1().Secrets("default").Delete(t.Context(), "metrics-tls", metav1.DeleteOptions{}); err != nil {
		t.Log(err)
	}
}
