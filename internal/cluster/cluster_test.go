package cluster

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func (f *fixture) read(t *testing.T) (nodespec.Cluster, error) {
	t.Helper()
	facts, _, err := Read(t.Context(), f.newClient(t), operatorNamespace, nodespec.ServingCertificate{})
	return facts, err
}

// D-3
func TestRead_ValidCluster(t *testing.T) {
	f := newFixture(t)
	want := nodespec.Cluster{
		Platform: "None", Version: "5.0.1",
		APIServerInternalURL: "https://api-int.lab.example.com:6443",
		APIServerCA:          f.rootCA.Data["ca.crt"], KubeletClientCA: f.files[kubeletCAPath].content,
		ServiceCIDRs: []string{"172.30.0.0/16", "fd02::/112"},
		Kubelet: nodespec.WorkerKubelet{ClusterDNS: []string{"172.30.0.10"}, ClusterDomain: "cluster.local",
			CloudProvider: "external"},
		Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true,
			HybridClusterNetworks: []string{"10.132.0.0/14"}, HybridSubnets: 512},
	}
	got, err := f.read(t)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	again, err := f.read(t)
	if err != nil || !reflect.DeepEqual(got, again) {
		t.Errorf("read again it is %+v, error %v", again, err)
	}
}

// addresses that certificates of nodes must never contain.
func TestRead_ClusterAddresses(t *testing.T) {
	f := newFixture(t)
	f.infrastructure.Status.APIServerURL = "https://api.lab.example.com:6443"
	f.infrastructure.Status.PlatformStatus.Type = configv1.VSpherePlatformType
	f.infrastructure.Status.PlatformStatus.VSphere = &configv1.VSpherePlatformStatus{APIServerInternalIPs: []string{"10.0.0.2"}, IngressIPs: []string{"10.0.0.3"}}
	f.network.Status.ClusterNetwork = []configv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23},
		{CIDR: "fd01::/48", HostPrefix: 64}}
	got, err := f.read(t)
	if err != nil {
		t.Fatal(err)
	}
	if got.APIServerURL != "https://api.lab.example.com:6443" ||
		!slices.Equal(got.VirtualIPs, []string{"10.0.0.2", "10.0.0.3"}) ||
		!slices.Equal(got.Network.PodNetworks, []string{"10.128.0.0/14", "fd01::/48"}) {
		t.Errorf("it is reached by %s and %v, and its pods have %v", got.APIServerURL, got.VirtualIPs,
			got.Network.PodNetworks)
	}
}

func TestRead_AcceptsVariations(t *testing.T) {
	hybrid := func(f *fixture) *operatorv1.HybridOverlayConfig {
		return f.operatorNetwork.Spec.DefaultNetwork.OVNKubernetesConfig.HybridOverlayConfig
	}
	tests := map[string]struct {
		change func(*testing.T, *fixture)
		wrong  func(nodespec.Cluster) bool
	}{
		"a custom VXLAN port is reported": {
			func(_ *testing.T, f *fixture) { hybrid(f).HybridOverlayVXLANPort = ptr.To(uint32(9898)) },
			func(c nodespec.Cluster) bool { return c.Network.VXLANPort == nil || *c.Network.VXLANPort != 9898 },
		},
		"the usual VXLAN port is no custom one": {
			func(_ *testing.T, f *fixture) { hybrid(f).HybridOverlayVXLANPort = ptr.To(uint32(4789)) },
			func(c nodespec.Cluster) bool { return c.Network.VXLANPort != nil },
		},
		"OVN-Kubernetes without hybrid networking is read, for policy to refuse": {
			func(_ *testing.T, f *fixture) {
				f.operatorNetwork.Spec.DefaultNetwork.OVNKubernetesConfig.HybridOverlayConfig = nil
			},
			func(c nodespec.Cluster) bool { return c.Network.HybridOverlay },
		},
		"hybrid networking without a network is none": {
			func(_ *testing.T, f *fixture) { hybrid(f).HybridClusterNetwork = nil },
			func(c nodespec.Cluster) bool { return c.Network.HybridOverlay },
		},
		"the pod subnets of several hybrid networks are counted together": {
			func(_ *testing.T, f *fixture) {
				hybrid(f).HybridClusterNetwork = []operatorv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/16", HostPrefix: 24}, {CIDR: "10.140.0.0/24", HostPrefix: 24}}
			},
			func(c nodespec.Cluster) bool { return c.Network.HybridSubnets != 257 },
		},
		"a hybrid network that is smaller than a node's part has an unknown number of them": {
			func(_ *testing.T, f *fixture) { hybrid(f).HybridClusterNetwork[0].HostPrefix = 13 },
			func(c nodespec.Cluster) bool { return c.Network.HybridSubnets != 0 },
		},
		"another network plugin is read, for policy to refuse": {
			func(_ *testing.T, f *fixture) {
				f.network.Status.NetworkType, f.operatorNetwork.Spec.DefaultNetwork.OVNKubernetesConfig = "OpenShiftSDN", nil
			},
			func(c nodespec.Cluster) bool { return c.Network.Type != "OpenShiftSDN" || c.Network.HybridOverlay },
		},
		"a cluster that has not completed a version yet has the desired one": {
			func(_ *testing.T, f *fixture) { f.version.Status.History = f.version.Status.History[:1] },
			func(c nodespec.Cluster) bool { return c.Version != "5.0.2" },
		},
		"workers without a cloud provider have none": {
			func(_ *testing.T, f *fixture) {
				f.units["kubelet.service"] = "ExecStart=kubelet --cloud-provider= \\\n --v=2"
			},
			func(c nodespec.Cluster) bool { return c.Kubelet.CloudProvider != "" },
		},
		"an Ignition of an older version is read": {
			func(t *testing.T, f *fixture) {
				f.ignition = strings.Replace(string(f.rawIgnition(t)), "3.5.0", "3.2.0", 1)
			},
			func(c nodespec.Cluster) bool { return c.Kubelet.ClusterDomain != "cluster.local" },
		},
		"the kubelet CA of ControllerConfig, which rotates, goes before that of the Ignition": {
			func(t *testing.T, f *fixture) {
				f.clientCA = controllerConfigWith(newAuthorityPEM(t, "clients"))
				f.files[kubeletCAPath] = file{content: "an old one, which nobody reads"}
			},
			func(c nodespec.Cluster) bool { return !strings.Contains(c.KubeletClientCA, "CERTIFICATE") },
		},
		"a ControllerConfig without a kubelet CA leaves that of the Ignition": {
			func(_ *testing.T, f *fixture) { f.clientCA = controllerConfigWith("") },
			func(c nodespec.Cluster) bool { return !strings.Contains(c.KubeletClientCA, "CERTIFICATE") },
		},
		"a private key in a CA bundle goes nowhere": {
			func(_ *testing.T, f *fixture) {
				f.rootCA.Data["ca.crt"] += "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
			},
			func(c nodespec.Cluster) bool { return strings.Contains(c.APIServerCA, "PRIVATE") },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			test.change(t, f)
			if got, err := f.read(t); err != nil || test.wrong(got) {
				t.Errorf("got %+v, error %v", got, err)
			}
		})
	}
}

func TestRead_InvalidObjectNamed(t *testing.T) {
	tests := map[string]struct {
		mutate func(*fixture)
		want   []string
	}{
		"no Infrastructure": {func(f *fixture) { f.infrastructure = nil }, []string{"Infrastructure cluster", "does not exist"}},
		"an Infrastructure of no platform": {func(f *fixture) { f.infrastructure.Status.PlatformStatus = nil },
			[]string{"Infrastructure cluster", "status.platformStatus.type"}},
		"no internal address of the API server": {func(f *fixture) { f.infrastructure.Status.APIServerInternalURL = "" },
			[]string{"status.apiServerInternalURI", "empty"}},
		"an internal address that is not HTTPS": {func(f *fixture) { f.infrastructure.Status.APIServerInternalURL = "http://user:canary@api-int" },
			[]string{"status.apiServerInternalURI", "https://<host>:<port>"}},
		"no ClusterVersion":               {func(f *fixture) { f.version = nil }, []string{"ClusterVersion version", "does not exist"}},
		"a ClusterVersion of no version":  {func(f *fixture) { f.version.Status = configv1.ClusterVersionStatus{} }, []string{"status.desired.version"}},
		"no Network of the configuration": {func(f *fixture) { f.network = nil }, []string{"Network.config.openshift.io cluster"}},
		"a network that is not up":        {func(f *fixture) { f.network.Status.NetworkType = "" }, []string{"status.networkType"}},
		"an invalid service network": {func(f *fixture) { f.network.Status.ServiceNetwork = []string{"172.30.0.0"} },
			[]string{"status.serviceNetwork", "172.30.0.0"}},
		"service networks of IPv6 only": {func(f *fixture) { f.network.Status.ServiceNetwork = []string{"fd02::/112"} },
			[]string{"status.serviceNetwork", "no IPv4 network"}},
		"no Network of the operator": {func(f *fixture) { f.operatorNetwork = nil }, []string{"Network.operator.openshift.io cluster"}},
		"an invalid hybrid network": {func(f *fixture) {
			f.operatorNetwork.Spec.DefaultNetwork.OVNKubernetesConfig.HybridOverlayConfig.HybridClusterNetwork[0].CIDR = "x"
		}, []string{"hybridClusterNetwork", `"x"`}},
		"an invalid VXLAN port": {func(f *fixture) {
			f.operatorNetwork.Spec.DefaultNetwork.OVNKubernetesConfig.HybridOverlayConfig.HybridOverlayVXLANPort = ptr.To(uint32(70000))
		}, []string{"hybridOverlayVXLANPort", "70000"}},
		"no pool of workers": {func(f *fixture) { f.pool = nil }, []string{"MachineConfigPool worker", "does not exist"}},
		"a pool that is not rendered": {func(f *fixture) { f.pool.Spec.Configuration.Name, f.pool.Status.Configuration.Name = "", "" },
			[]string{"MachineConfigPool worker", "spec.configuration.name"}},
		"a rendered configuration that is not there": {func(f *fixture) { f.rendered = nil }, []string{"MachineConfig rendered-worker-1", "does not exist"}},
		"no Ignition":                      {func(f *fixture) { f.ignition = "{}" }, []string{"MachineConfig rendered-worker-1", "spec.config"}},
		"an Ignition of a version to come": {func(f *fixture) { f.ignition = `{"ignition":{"version":"4.0.0"}}` }, []string{"spec.config", "Ignition"}},
		"an Ignition without a kubelet's configuration": {func(f *fixture) { delete(f.files, kubeletConfigPath) },
			[]string{kubeletConfigPath, "does not exist"}},
		"an invalid configuration of the kubelet": {func(f *fixture) { f.files[kubeletConfigPath] = file{content: "kind: Pod"} },
			[]string{kubeletConfigPath, `"Pod"`}},
		"a kubelet's configuration that is no YAML": {func(f *fixture) { f.files[kubeletConfigPath] = file{content: "{"} },
			[]string{kubeletConfigPath, "YAML"}},
		"a kubelet's configuration without DNS": {func(f *fixture) {
			f.files[kubeletConfigPath] = file{content: strings.Replace(kubeletConfig, "[172.30.0.10]", "[]", 1)}
		}, []string{"clusterDNS"}},
		"an invalid DNS address": {func(f *fixture) {
			f.files[kubeletConfigPath] = file{content: strings.Replace(kubeletConfig, "172.30.0.10", "dns", 1)}
		}, []string{"clusterDNS", `"dns"`}},
		"an invalid domain": {func(f *fixture) {
			f.files[kubeletConfigPath] = file{content: strings.Replace(kubeletConfig, "cluster.local", "-cluster", 1)}
		}, []string{"clusterDomain"}},
		"an invalid kubelet CA": {func(f *fixture) { f.files[kubeletCAPath] = file{content: "canary"} }, []string{kubeletCAPath, "no certificate"}},
		"a file that unpacks to more than it may": {func(f *fixture) {
			f.files[kubeletCAPath] = file{content: strings.Repeat("x", fileLimit+1), compressed: true}
		}, []string{kubeletCAPath, "larger than"}},
		"a kubelet CA in neither place": {func(f *fixture) { delete(f.files, kubeletCAPath) },
			[]string{"ControllerConfig machine-config-controller", "does not exist"}},
		"an empty kubelet CA and none in the Ignition": {func(f *fixture) { delete(f.files, kubeletCAPath); f.clientCA = controllerConfigWith("") },
			[]string{"ControllerConfig machine-config-controller", "spec.kubeAPIServerServingCAData", "empty"}},
		"an invalid kubelet CA of ControllerConfig": {func(f *fixture) { f.clientCA = controllerConfigWith("canary") },
			[]string{"ControllerConfig machine-config-controller", "spec.kubeAPIServerServingCAData", "no certificate"}},
		"no CA of the API server": {func(f *fixture) { f.rootCA = nil }, []string{"ConfigMap wmco/kube-root-ca.crt", "does not exist"}},
		"a CA of the API server under another key": {func(f *fixture) { f.rootCA.Data = map[string]string{"x": ""} },
			[]string{"ConfigMap wmco/kube-root-ca.crt", "key ca.crt"}},
		"an invalid CA of the API server": {func(f *fixture) { f.rootCA.Data["ca.crt"] = "canary" }, []string{"key ca.crt", "no certificate"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			test.mutate(f)
			_, err := f.read(t)
			var fault *Error
			if !errors.As(err, &fault) || fault.Object == "" || fault.Message == "" {
				t.Fatalf("error is %v, want an *Error that names the object", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("error %q repeats content", err)
			}
		})
	}
}

func TestRead_FailedRequestIsNotInvalidObject(t *testing.T) {
	answering := func(err error) client.Reader {
		return interceptor.NewClient(newFixture(t).newClient(t).(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
				options ...client.GetOption) error {
				if _, ok := object.(*corev1.ConfigMap); ok {
					return err
				}
				return c.Get(ctx, key, object, options...)
			},
		})
	}
	t.Run("a request that fails may succeed later", func(t *testing.T) {
		failure := errors.New("connection refused")
		_, _, err := Read(t.Context(), answering(failure), operatorNamespace, nodespec.ServingCertificate{})
		var fault *Error
		if !errors.Is(err, failure) || errors.As(err, &fault) || !strings.Contains(err.Error(), "kube-root-ca.crt") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("a kind that the API server does not know says that this is no OpenShift", func(t *testing.T) {
		_, _, err := Read(t.Context(), answering(&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}),
			operatorNamespace, nodespec.ServingCertificate{})
		var fault *Error
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), "OpenShift") {
			t.Errorf("error is %v", err)
		}
	})
}

func TestObjects_KnownToScheme(t *testing.T) {
	c := newFixture(t).newClient(t)
	seen := map[string]bool{}
	for _, watched := range Objects() {
		kind, err := c.GroupVersionKindFor(watched.Object)
		if err != nil || seen[kind.String()] {
			t.Errorf("%T is %s, error %v", watched.Object, kind, err)
		}
		seen[kind.String()] = true
	}
}

func FuzzIgnition(f *testing.F) {
	f.Add([]byte(`{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/etc/kubernetes/kubelet.conf","contents":{"source":"data:,kind"}}]}}`))
	f.Add([]byte(`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:;base64,H4sI","compression":"gzip"}}]}}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		worker, err := parseIgnition(raw)
		if err != nil {
			return
		}
		var facts nodespec.Cluster
		_ = readWorkerKubelet(worker, "fuzz", &facts)
		for path := range worker.files {
			_, _, _ = worker.fileContent(path)
		}
	})
}
