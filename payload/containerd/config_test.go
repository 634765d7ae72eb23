// Package containerd proves that what the operator writes for containerd is what containerd of this version takes it
// for. The files are the golden ones of internal/nodespec.
package containerd

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/containerd/containerd/v2/cmd/containerd/server/config"
	_ "github.com/containerd/containerd/v2/plugins/cri/images"
	_ "github.com/containerd/containerd/v2/plugins/cri/runtime"
	_ "github.com/containerd/containerd/v2/plugins/nri"
	_ "github.com/containerd/containerd/v2/plugins/transfer"
	"github.com/containerd/containerd/v2/version"
	"github.com/containerd/log"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
	"github.com/pelletier/go-toml/v2"
)

// containerd logs each host that it could not reach.
func TestMain(m *testing.M) {
	if err := log.SetLevel("error"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const testdata = "../../internal/nodespec/testdata"

// configurations returns the golden files of containerd's own configuration.
func configurations(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testdata, "*", "containerd", "containerd_conf.toml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files; %v", err)
	}
	return paths
}

//
func TestConfig_AcceptedByContainerd(t *testing.T) {
	for _, path := range configurations(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(path))), func(t *testing.T) {
			var loaded config.Config
			if err := config.LoadConfig(context.Background(), path, &loaded); err != nil {
				t.Fatal(err)
			}
			// containerd only warns of a key that it does not know.
			if err := decodeStrictly(t, path, &config.Config{}); err != nil {
				t.Errorf("containerd knows no such key: %v", err)
			}
			if loaded.Version != version.ConfigVersion {
				t.Errorf("the file has version %d and would be migrated to %d at each start", loaded.Version, version.ConfigVersion)
			}
			for uri, settings := range loaded.Plugins {
				if _, err := pluginConfig(uri, settings); err != nil {
					t.Errorf("%s: %v", uri, err)
				}
			}
		})
	}
}

//
func TestConfig_RuntimeHandlersIsolateProcesses(t *testing.T) {
	for _, path := range configurations(t) {
		var settings struct {
			Containerd struct {
				DefaultRuntimeName string
				Runtimes           map[string]struct {
					RuntimeType string
					Options     struct {
						ScrubLogs        bool
						SandboxIsolation int
					}
				}
			}
			CNI struct {
				BinDirs []string
				ConfDir string
			}
		}
		readPlugin(t, path, "io.containerd.cri.v1.runtime", &settings)
		if settings.Containerd.DefaultRuntimeName != "runhcs-wcow-process" {
			t.Errorf("pods without a RuntimeClass get %q", settings.Containerd.DefaultRuntimeName)
		}
		for _, handler := range []string{"runhcs-wcow-process", "docker"} {
			runtime := settings.Containerd.Runtimes[handler]
			if runtime.RuntimeType != "io.containerd.runhcs.v1" || !runtime.Options.ScrubLogs ||
				runtime.Options.SandboxIsolation != 0 {
				t.Errorf("%s is %+v", handler, runtime)
			}
		}
		if !slices.Equal(settings.CNI.BinDirs, []string{`C:\k\cni`}) || settings.CNI.ConfDir != `C:\k\cni\config` {
			t.Errorf("CNI is %+v", settings.CNI)
		}
	}
}

func TestConfig_TransferServicePullsFromConfiguredRegistries(t *testing.T) {
	for _, path := range configurations(t) {
		var images struct {
			PinnedImages             map[string]string `json:"pinned_images"`
			Registry                 struct{ ConfigPath string }
			MaxConcurrentDownloads   int
			ImagePullProgressTimeout string
			UseLocalImagePull        bool
		}
		readPlugin(t, path, "io.containerd.cri.v1.images", &images)
		// Another number of downloads than 3 here would turn the transfer service off (CheckLocalImagePullConfigs).
		if images.MaxConcurrentDownloads != 3 || images.UseLocalImagePull || images.ImagePullProgressTimeout != "30m" {
			t.Errorf("%+v", images)
		}
		if images.Registry.ConfigPath != `C:\k\containerd\registries` || images.PinnedImages["sandbox"] == "" {
			t.Errorf("%+v", images)
		}
		var nri struct{ Disable bool }
		if readPlugin(t, path, "io.containerd.nri.v1.nri", &nri); !nri.Disable {
			t.Error("plugins may change containers")
		}
	}
}

// readPlugin reads what a plugin's configuration becomes with the program's defaults into a type of the fields that
// matter.
func readPlugin(t *testing.T, path, uri string, into any) {
	t.Helper()
	var loaded config.Config
	if err := config.LoadConfig(context.Background(), path, &loaded); err != nil {
		t.Fatal(err)
	}
	settings, err := pluginConfig(uri, loaded.Plugins[uri])
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// pluginConfig decodes settings strictly into the type and defaults that a plugin registered.
func pluginConfig(uri string, settings any) (any, error) {
	registered := registry.Graph(func(*plugin.Registration) bool { return false })
	i := slices.IndexFunc(registered, func(r plugin.Registration) bool { return r.URI() == uri })
	if i < 0 {
		return nil, os.ErrNotExist
	}
	data, err := toml.Marshal(settings)
	if err != nil {
		return nil, err
	}
	decoded := reflect.New(reflect.TypeOf(registered[i].Config).Elem())
	defaults, err := toml.Marshal(registered[i].Config)
	if err != nil {
		return nil, err
	}
	for _, layer := range [][]byte{defaults, data} {
		if err := toml.NewDecoder(bytes.NewReader(layer)).DisallowUnknownFields().Decode(decoded.Interface()); err != nil {
			return nil, err
		}
	}
	return decoded.Interface(), nil
}

func decodeStrictly(t *testing.T, path string, into any) error {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(into)
}
