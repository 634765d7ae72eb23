// Package kubelet verifies that the kubelet of this version interprets its configuration files as the operator
// intends. The files are the golden files of internal/nodespec.
package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider/plugin"
	_ "k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"
)

const nodespec = "../../../internal/nodespec"

// goldenFiles returns the golden files with a name, for every platform that has one.
func goldenFiles(t *testing.T, name string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(nodespec, "testdata", "*", name))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files %s; %v", name, err)
	}
	return paths
}

// load decodes strictly and sets defaults, as the kubelet does.
func load(t *testing.T, path string) *kubeletconfig.KubeletConfiguration {
	t.Helper()
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, path)
	if err != nil {
		t.Fatal(err)
	}
	config, err := loader.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return config
}

//
func TestConfigurationIsWhatTheKubeletTakes(t *testing.T) {
	for _, path := range goldenFiles(t, "kubelet.conf") {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			config := load(t, path)
			if runtime.GOOS != "windows" {
				config.FailCgroupV1 = false // the check depends on the machine that runs the test
			}
			gates := allGates(t).DeepCopy()
			if err := gates.SetFromMap(config.FeatureGates); err != nil {
				t.Fatalf("feature gates: %v", err)
			}
			if err := validation.ValidateKubeletConfiguration(config, gates); err != nil {
				t.Error(err)
			}
			// The remaining checks are the validations of the kubelet that depend on Windows.
			if config.CgroupsPerQOS || config.SingleProcessOOMKill != nil || config.UserNamespaces != nil ||
				!slices.Equal(config.EnforceNodeAllocatable, []string{"none"}) {
				t.Errorf("Windows has no cgroups: %v, %v", config.CgroupsPerQOS, config.EnforceNodeAllocatable)
			}
			if config.ContainerRuntimeEndpoint != "npipe://./pipe/containerd-containerd" || config.ResolverConfig != "" {
				t.Errorf("%+v", config)
			}
		})
	}
}

// The kubelet fails on an unknown gate or a gate that is locked. The operator embeds the list of gates that can
// be changed.
func TestFeatureGatesThatTheOperatorKnowsAreThoseOfTheKubelet(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(nodespec, "featuregates.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var gates []string
	for name, spec := range allGates(t).GetAll() {
		if !spec.LockToDefault && name != "AllAlpha" && name != "AllBeta" {
			gates = append(gates, string(name))
		}
	}
	slices.Sort(gates)
	if want := strings.Fields(string(data)); !slices.Equal(gates, want) {
		t.Errorf("featuregates.txt lacks %v of the kubelet and has %v, which it lacks", missing(gates, want),
			missing(want, gates))
	}
}

// allGates returns the gates of the kubelet program.
func allGates(t *testing.T) featuregate.MutableVersionedFeatureGate {
	t.Helper()
	if err := logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		t.Fatal(err)
	}
	return utilfeature.DefaultMutableFeatureGate
}

// missing returns the elements of all that are not in some.
func missing(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) })
}

func TestCredentialProviderIsWhatTheKubeletTakes(t *testing.T) {
	programs := t.TempDir()
	name := "ecr-credential-provider"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if err := os.WriteFile(filepath.Join(programs, name), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range goldenFiles(t, "credential-provider-config.yaml") {
		if err := plugin.RegisterCredentialProviderPlugins(path, programs, nil, nil); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestCredentialsAreOfferedToTheirRegistries(t *testing.T) {
	credentialprovider.SetPreferredDockercfgPath(filepath.Join(nodespec, "testdata", "registries"))
	config, err := credentialprovider.ReadDockerConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	var keyring credentialprovider.BasicDockerKeyring
	keyring.Add(nil, config)
	for image, want := range map[string]string{
		"parts.example.com/org/app:v1": "org", "parts.example.com/other/app:v1": "", "quay.io/org/app:v1": "",
		"private.example.com:5000/app": "user", "private.example.com/app": "",
	} {
		found, ok := keyring.Lookup(image)
		if ok != (want != "") || ok && found[0].Username != want {
			t.Errorf("%s is pulled with %d credentials, want those of %q", image, len(found), want)
		}
	}
}
