package nodespec

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// Every field of the kubelet's configuration is followed, or excluded for a reason. New releases of Kubernetes add
// fields.
func TestKubeletFields_EveryFieldClassified(t *testing.T) {
	var fields []string
	for i := range reflect.TypeFor[kubeletconfig.KubeletConfiguration]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[kubeletconfig.KubeletConfiguration]().Field(i).Tag.Get("json"), ",")
		if name != "" {
			fields = append(fields, name)
		}
	}
	for _, name := range fields {
		if _, known := kubeletFields[name]; !known {
			t.Errorf("nobody said whether Windows nodes follow %s", name)
		}
	}
	for name := range kubeletFields {
		if !slices.Contains(fields, name) && name != "apiVersion" && name != "kind" {
			t.Errorf("%s is no field of the kubelet's configuration", name)
		}
	}
	if !IsFollowedKubeletField("tlsMinVersion") || IsFollowedKubeletField("systemReserved") || IsFollowedKubeletField("madeUp") {
		t.Error("FollowsKubeletField does not tell what the table says")
	}
	if followed := FollowedKubeletFields(); !slices.IsSorted(followed) || !slices.Contains(followed, "maxPods") ||
		slices.Contains(followed, "cgroupDriver") {
		t.Errorf("followed are %v", followed)
	}
}

func TestIsUnfollowedKubeletField(t *testing.T) {
	for field, want := range map[string]bool{
		"maxPods": false, "evictionHard": false, // followed
		"cgroupDriver": false, "failSwapOn": false, "volumePluginDir": false, // Linux only
		"clusterDNS": false, "apiVersion": false, "kind": false, // not set in a KubeletConfig
		"systemReserved": true, "cpuManagerPolicy": true, "shutdownGracePeriod": true, "registerWithTaints": true, "podPidsLimit": true,
		"futureField": true,
	} {
		if IsUnfollowedKubeletField(field) != want {
			t.Errorf("%s is missed: %v", field, !want)
		}
	}
	if !IsReservation("systemReserved") || !IsReservation("kubeReserved") || IsReservation("cpuManagerPolicy") || IsReservation("maxPods") {
		t.Error("the reservations are others")
	}
}

func kubeletConfigOf(t testing.TB, in Inputs) kubeletconfig.KubeletConfiguration {
	t.Helper()
	var config kubeletconfig.KubeletConfiguration
	if err := yaml.UnmarshalStrict([]byte(fileAt(t, mustMake(t, in), kubeletConfigFile).Content), &config); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestKubeletSettings(t *testing.T) {
	in := testInputs()
	in.Cluster.Kubelet.Settings = testSettings
	config := kubeletConfigOf(t, in)
	t.Run("what the workers have, Windows nodes have", func(t *testing.T) {
		if config.MaxPods != 120 || *config.KubeAPIQPS != 100 || config.ContainerLogMaxSize != "20Mi" ||
			config.TLSMinVersion != "VersionTLS12" ||
			!slices.Equal(config.TLSCipherSuites, []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}) {
			t.Errorf("%+v", config)
		}
	})
	t.Run("of what the workers do not set, Windows nodes keep theirs", func(t *testing.T) {
		if config.KubeAPIBurst != 100 || *config.SerializeImagePulls ||
			config.RuntimeRequestTimeout.Duration.String() != "10m0s" {
			t.Errorf("%+v", config)
		}
	})
	t.Run("only the feature gates that the kubelet has and lets be set", func(t *testing.T) {
		if want := map[string]bool{"RotateKubeletServerCertificate": true}; !maps.Equal(config.FeatureGates, want) {
			t.Errorf("%v", config.FeatureGates)
		}
	})
	t.Run("only the eviction signals that mean the same on Windows", func(t *testing.T) {
		if want := map[string]string{"imagefs.available": "20%", "nodefs.available": "5%"}; !maps.Equal(config.EvictionHard,
			want) {
			t.Errorf("%v", config.EvictionHard)
		}
	})
	t.Run("signals of Linux alone leave the usual ones", func(t *testing.T) {
		in.Cluster.Kubelet.Settings = `{"evictionHard":{"memory.available":"1Gi"},"featureGates":{"WinDSR":true}}`
		config := kubeletConfigOf(t, in)
		if want := map[string]string{"imagefs.available": "15%", "nodefs.available": "10%"}; !maps.Equal(config.EvictionHard,
			want) || config.FeatureGates != nil {
			t.Errorf("%v, %v", config.EvictionHard, config.FeatureGates)
		}
	})
	t.Run("numbers stay as they are", func(t *testing.T) {
		in.Cluster.Kubelet.Settings = `{"nodeLeaseDurationSeconds":9007199254740993}`
		if content := fileAt(t, mustMake(t, in), kubeletConfigFile).Content; !strings.Contains(content,
			`: 9007199254740993,`) {
			t.Error(content)
		}
	})
	for name, test := range map[string]struct{ settings, want string }{
		"a field that Windows nodes do not follow": {`{"cgroupDriver":"systemd"}`, "cgroupDriver"},
		"a field that the operator itself sets":    {`{"registerWithTaints":[]}`, "registerWithTaints"},
		"a field in other letters":                 {`{"MaxPods":1}`, "MaxPods"},
		"a list":                                   {`[1]`, "not a JSON object"},
		"null":                                     {`null`, "not a JSON object"},
		"an object and more":                       {`{} {}`, "not a JSON object"},
		"gates that are no object":                 {`{"featureGates":"all"}`, "featureGates is not an object"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			in.Cluster.Kubelet.Settings = test.settings
			if _, err := Make(in); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func FuzzKubeletSettings(f *testing.F) {
	f.Add(testSettings)
	f.Add(`{"evictionSoft":{"nodefs.available":"1%"},"maxPods":1e99}`)
	f.Fuzz(func(t *testing.T, settings string) {
		in := testInputs()
		in.Cluster.Kubelet.Settings = settings
		spec, err := Make(in)
		if err != nil {
			return
		}
		var config map[string]any
		if err := json.Unmarshal([]byte(fileAt(t, spec, kubeletConfigFile).Content), &config); err != nil {
			t.Fatal(err)
		}
		// Settings that the operator relies on do not follow the workers.
		if config["staticPodPath"] != manifestsDirectory || config["containerRuntimeEndpoint"] != ContainerdEndpoint ||
			config["serverTLSBootstrap"] != true {
			t.Errorf("%v", config)
		}
	})
}
