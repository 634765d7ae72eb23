package cluster

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const operatorNamespace = "wmco"

// fixture contains the objects of a valid cluster. Tests invalidate some of them; nil objects are missing.
type fixture struct {
	infrastructure  *configv1.Infrastructure
	version         *configv1.ClusterVersion
	network         *configv1.Network
	operatorNetwork *operatorv1.Network
	pool            *machineconfigv1.MachineConfigPool
	rendered        *machineconfigv1.MachineConfig
	rootCA          *corev1.ConfigMap
	clientCA        *machineconfigv1.ControllerConfig
	// optional are optional objects of the cluster.
	optional []client.Object
	// files and units are the rendered configuration; ignition overrides them.
	files    map[string]file
	units    map[string]string
	ignition string
}

type file struct {
	content    string
	compressed bool
}

const kubeletConfig = `
kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
clusterDNS: [172.30.0.10]
clusterDomain: cluster.local
`

func newFixture(t *testing.T) *fixture {
	cluster := metav1.ObjectMeta{Name: "cluster"}
	return &fixture{
		infrastructure: &configv1.Infrastructure{ObjectMeta: cluster, Status: configv1.InfrastructureStatus{
			InfrastructureName: "lab-x7k2p", APIServerInternalURL: "https://api-int.lab.example.com:6443",
			PlatformStatus: &configv1.PlatformStatus{Type: configv1.NonePlatformType},
		}},
		version: &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"},
			Status: configv1.ClusterVersionStatus{
				Desired: configv1.Release{Version: "5.0.2"},
				History: []configv1.UpdateHistory{
					{State: configv1.PartialUpdate, Version: "5.0.2"}, {State: configv1.CompletedUpdate, Version: "5.0.1"},
					{State: configv1.CompletedUpdate, Version: "5.0.0"},
				},
			}},
		network: &configv1.Network{ObjectMeta: cluster, Status: configv1.NetworkStatus{
			NetworkType: "OVNKubernetes", ServiceNetwork: []string{"172.30.0.0/16", "fd02::/112"},
		}},
		operatorNetwork: &operatorv1.Network{ObjectMeta: cluster, Spec: operatorv1.NetworkSpec{
			DefaultNetwork: operatorv1.DefaultNetworkDefinition{Type: "OVNKubernetes",
				OVNKubernetesConfig: &operatorv1.OVNKubernetesConfig{
					HybridOverlayConfig: &operatorv1.HybridOverlayConfig{
						HybridClusterNetwork: []operatorv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14", HostPrefix: 23}},
					},
				}},
		}},
		pool: &machineconfigv1.MachineConfigPool{
			ObjectMeta: metav1.ObjectMeta{Name: "worker"},
			Spec:       machineconfigv1.MachineConfigPoolSpec{Configuration: poolConfiguration("rendered-worker-1")},
			Status:     machineconfigv1.MachineConfigPoolStatus{Configuration: poolConfiguration("rendered-worker-1")},
		},
		rendered: &machineconfigv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "rendered-worker-1"}},
		rootCA:   configMap(operatorNamespace, "kube-root-ca.crt", "ca.crt", newAuthorityPEM(t, "api")),
		files: map[string]file{
			kubeletConfigPath: {content: kubeletConfig},
			kubeletCAPath:     {content: newAuthorityPEM(t, "ignition"), compressed: true},
		},
		units: map[string]string{"kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet \\\n  --cloud-provider=external \\\n  --v=2\n"},
	}
}

func poolConfiguration(name string) machineconfigv1.MachineConfigPoolStatusConfiguration {
	return machineconfigv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: name}}
}

func controllerConfigWith(bundle string) *machineconfigv1.ControllerConfig {
	return &machineconfigv1.ControllerConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "machine-config-controller"},
		Spec:       machineconfigv1.ControllerConfigSpec{KubeAPIServerServingCAData: []byte(bundle)},
	}
}

func configMap(namespace, name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string]string{key: value}}
}

// newClient serves the objects like the API server.
func (f *fixture) newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	if f.rendered != nil {
		f.rendered.Spec.Config.Raw = f.rawIgnition(t)
		builder.WithObjects(f.rendered)
	}
	if f.infrastructure != nil {
		builder.WithObjects(f.infrastructure)
	}
	if f.version != nil {
		builder.WithObjects(f.version)
	}
	if f.network != nil {
		builder.WithObjects(f.network)
	}
	if f.operatorNetwork != nil {
		builder.WithObjects(f.operatorNetwork)
	}
	if f.pool != nil {
		builder.WithObjects(f.pool)
	}
	if f.clientCA != nil {
		builder.WithObjects(f.clientCA)
	}
	if f.rootCA != nil {
		builder.WithObjects(f.rootCA)
	}
	return builder.WithObjects(f.optional...).Build()
}

func (f *fixture) rawIgnition(t *testing.T) []byte {
	t.Helper()
	if f.ignition != "" {
		return []byte(f.ignition)
	}
	type object = map[string]any
	var files, units []object
	for path, file := range f.files {
		contents := object{"source": "data:text/plain;charset=utf-8;base64," +
			base64.StdEncoding.EncodeToString([]byte(file.content))}
		if file.compressed {
			contents = object{"compression": "gzip",
				"source": "data:;base64," + base64.StdEncoding.EncodeToString(compressGzip(t, file.content))}
		}
		files = append(files, object{"path": path, "contents": contents})
	}
	for name, contents := range f.units {
		units = append(units, object{"name": name, "contents": contents})
	}
	raw, err := json.Marshal(object{"ignition": object{"version": "3.5.0"}, "storage": object{"files": files},
		"systemd": object{"units": units}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func compressGzip(t *testing.T, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// newAuthorityPEM creates a certificate authority in PEM.
func newAuthorityPEM(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
