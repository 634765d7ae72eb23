// Package kubelet verifies that the kubelet of a Kubernetes version interprets its configuration files as the operator
// intends. The files are the golden files of internal/nodespec. The modules in payload/kubernetes-* have links to this
// file, so that it runs with each version that the operator serves.
package kubelet

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"
)

const nodespec = "../../../internal/nodespec"

// minorVersion returns the minor version of Kubernetes in the module of the test: "1.36".
func minorVersion(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`\tk8s\.io/kubernetes v(1\.\d+)\.`).FindSubmatch(data)
	if match == nil {
		t.Fatal("go.mod requires no version of k8s.io/kubernetes")
	}
	return string(match[1])
}

// goldenFiles returns the golden files with a name for the version of the test: for the version of most tests of
// internal/nodespec these are the files of every platform, for other versions those of one platform.
func goldenFiles(t *testing.T, name string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(nodespec, "testdata", "*", name))
	if err != nil {
		t.Fatal(err)
	}
	const perVersion = "kubernetes-"
	own := filepath.Join(nodespec, "testdata", perVersion+minorVersion(t), name)
	if slices.Contains(all, own) {
		return []string{own}
	}
	paths := slices.DeleteFunc(all, func(path string) bool { return strings.HasPrefix(filepath.Base(filepath.Dir(path)), perVersion) })
	if len(paths) == 0 {
		t.Fatalf("no golden files %s", name)
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
	var config *kubeletconfig.KubeletConfiguration
	switch loader := any(loader).(type) {
	case interface {
		Load(context.Context) (*kubeletconfig.KubeletConfiguration, error)
	}:
		config, err = loader.Load(t.Context())
	case interface { // until Kubernetes 1.34
		Load() (*kubeletconfig.KubeletConfiguration, error)
	}:
		config, err = loader.Load()
	default:
		t.Fatalf("%T has no known method Load", loader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return config
}

//
func TestKubeletConfig_AcceptedByKubelet(t *testing.T) {
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
func TestFeatureGates_MatchKubelet(t *testing.T) {
	list := filepath.Join(nodespec, "featuregates", minorVersion(t)+".txt")
	data, err := os.ReadFile(list)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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
		if os.Getenv("UPDATE_FEATUREGATES") == "" {
			t.Fatalf("the list lacks %v of the kubelet and has %v, which the kubelet lacks; run this test with "+
				"UPDATE_FEATUREGATES=1", missing(gates, want), missing(want, gates))
		}
		if err := os.WriteFile(list, []byte(strings.Join(gates, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
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
