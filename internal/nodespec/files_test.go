package nodespec

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

func fileOf(t *testing.T, path string) File {
	t.Helper()
	spec := mustMake(t, testInputs())
	i := slices.IndexFunc(spec.Files, func(f File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("the spec has no file %s", path)
	}
	return spec.Files[i]
}

//
func TestKubeletConfiguration(t *testing.T) {
	var config kubeletconfig.KubeletConfiguration
	if err := yaml.UnmarshalStrict([]byte(fileOf(t, `C:\k\kubelet.conf`).Content), &config); err != nil {
		t.Fatal(err)
	}
	t.Run("a node registers with the taint of Windows and with the one of a node that is not proven", func(t *testing.T) {
		want := []corev1.Taint{
			{Key: "os", Value: "Windows", Effect: corev1.TaintEffectNoSchedule},
			{Key: "startup-taint.cluster-autoscaler.kubernetes.io/windows-not-ready", Effect: corev1.TaintEffectNoSchedule},
		}
		if !slices.Equal(config.RegisterWithTaints, want) {
			t.Errorf("taints are %+v", config.RegisterWithTaints)
		}
	})
	// The cluster autoscaler's FAQ: taints with this prefix are start-up taints, and a node with such a taint
	// counts as not ready yet.
	//
	t.Run("the cluster autoscaler recognizes the second as a start-up taint, and not the first", func(t *testing.T) {
		const prefix = "startup-taint.cluster-autoscaler.kubernetes.io/"
		for i, startup := range []bool{false, true} {
			key := config.RegisterWithTaints[i].Key
			if strings.HasPrefix(key, prefix) != startup {
				t.Errorf("taint %s is a start-up taint: %t", key, !startup)
			}
			if faults := validation.IsQualifiedName(key); len(faults) > 0 {
				t.Errorf("the API server refuses taint %s: %q", key, faults)
			}
		}
	})
	t.Run("pods resolve names as on the Linux workers", func(t *testing.T) {
		if !slices.Equal(config.ClusterDNS, []string{"172.30.0.10"}) || config.ClusterDomain != "cluster.local" {
			t.Errorf("DNS %v, domain %s", config.ClusterDNS, config.ClusterDomain)
		}
	})
	t.Run("clients are verified, none is anonymous, and certificates rotate", func(t *testing.T) {
		if config.Authentication.X509.ClientCAFile != `C:\k\kubelet-ca.crt` ||
			config.Authentication.Anonymous.Enabled == nil ||
			*config.Authentication.Anonymous.Enabled || !config.RotateCertificates || !config.ServerTLSBootstrap {
			t.Errorf("%+v", config.Authentication)
		}
	})
}

//
func TestKubeconfig(t *testing.T) {
	config, err := clientcmd.Load([]byte(fileOf(t, `C:\k\kubeconfig`).Content))
	if err != nil {
		t.Fatal(err)
	}
	if err := clientcmd.ConfirmUsable(*config, ""); err != nil && !strings.Contains(err.Error(), "unable to read") {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	if server := config.Clusters[context.Cluster].Server; server != "https://api-int.lab.example.com:6443" {
		t.Errorf("server is %s, want the internal one", server)
	}
	const current = `C:\var\lib\kubelet\pki\kubelet-client-current.pem`
	if user := config.AuthInfos[context.AuthInfo]; user.ClientCertificate != current ||
		user.ClientKey != current || user.Token != "" {
		t.Errorf("the user is %+v, want the certificate that the kubelet rotates", user)
	}
}

//
func TestContainerdConfiguration(t *testing.T) {
	var config struct {
		Version     int
		Root, State string
		Plugins     map[string]struct {
			CNI struct {
				BinDirs []string `toml:"bin_dirs"`
				ConfDir string   `toml:"conf_dir"`
			}
			Containerd struct {
				DefaultRuntime string `toml:"default_runtime_name"`
				Runtimes       map[string]struct {
					Type string `toml:"runtime_type"`
				}
			}
		}
	}
	if err := toml.Unmarshal([]byte(fileOf(t, `C:\k\containerd\containerd_conf.toml`).Content), &config); err != nil {
		t.Fatal(err)
	}
	plugin := config.Plugins["io.containerd.cri.v1.runtime"]
	if config.Version != 4 || config.Root != `C:\ProgramData\containerd\root` ||
		config.State != `C:\ProgramData\containerd\state` {
		t.Errorf("%+v", config)
	}
	if plugin.Containerd.Runtimes[plugin.Containerd.DefaultRuntime].Type != "io.containerd.runhcs.v1" ||
		plugin.Containerd.DefaultRuntime != "runhcs-wcow-process" {
		t.Errorf("runtimes are %+v", plugin.Containerd)
	}
	if !slices.Equal(plugin.CNI.BinDirs, []string{`C:\k\cni`}) || plugin.CNI.ConfDir != `C:\k\cni\config` {
		t.Errorf("CNI is %+v", plugin.CNI)
	}
}

//
func TestNetworkConfiguration_WaitsForItsNeeds(t *testing.T) {
	if needs := fileOf(t, cniConfigFile).Needs; !slices.Contains(needs, NeedHNSNetwork) {
		t.Errorf("pods may start before their network is there: the CNI's configuration needs %v", needs)
	}
	for _, file := range mustMake(t, azureInputs()).Files {
		for need, placeholder := range map[Need]string{NeedPodSubnet: PlaceholderPodSubnet,
			NeedSourceVIP: PlaceholderSourceVIP} {
			if holds := strings.Contains(file.Content, placeholder); holds != slices.Contains(file.Needs, need) {
				t.Errorf("%s holds %s: %v; it needs %v", file.Path, placeholder, holds, file.Needs)
			}
		}
		if strings.Contains(file.Content, PlaceholderPodRange) && !slices.Contains(file.Needs, NeedPodSubnet) {
			t.Errorf("%s holds %s, and needs %v", file.Path, PlaceholderPodRange, file.Needs)
		}
	}
	for _, path := range []string{`C:\k\cni\config\cni.conf`, `C:\k\kube-proxy.conf`} {
		content := strings.NewReplacer(PlaceholderPodSubnet, "10.132.0.0/23", PlaceholderPodRange, "10.132.0.3",
			PlaceholderSourceVIP, "10.132.0.9").Replace(fileOf(t, path).Content)
		if !json.Valid([]byte(content)) || !strings.Contains(content, `"10.132.0.0/23"`) || strings.Contains(content, "${") {
			t.Errorf("%s filled in is\n%s", path, content)
		}
	}
}
