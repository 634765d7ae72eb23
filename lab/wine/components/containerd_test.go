package components_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/wine"
)

const (
	configFile = `C:\k\containerd\containerd_conf.toml`
	program    = `C:\k\containerd\containerd.exe`
	// servedFile is the configuration with this addition: containerd serves the API over TCP, because named
	// pipes of Wine do not carry the API.
	servedFile = `C:\k\containerd\served.toml`
	served     = `
[plugins.'io.containerd.server.v1.grpc-tcp']
address = '0.0.0.0:1338'

[plugins.'io.containerd.grpc.v1.cri']
disable_tcp_service = false
`
	digest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

// The real containerd accepts the files that the operator writes for it, as far as Wine behaves like Windows.
func TestContainerd_AcceptsFiles(t *testing.T) {
	containerd := buildExecutable(t, "containerd", "containerd.exe")
	ctx := requireWine(t)
	mirror := newRegistry(t)
	spec := specOf(t, mirrorRegistries(mirror))
	files := write(t, spec)
	files[program] = containerd
	h := start(ctx, t, wine.Options{Name: "CONTAINERD", Address: netip.MustParseAddr("10.2.0.2"), Files: files})

	t.Run("it boots with them, and knows every key in them", func(t *testing.T) {
		log := bootContainerd(ctx, t, h, configFile)
		for _, warning := range []string{"unknown key", "Configuration migrated", "Falling back to local image pull", "deprecated"} {
			if line := lineWith(log, warning); line != "" {
				t.Error(line)
			}
		}
		if lineWith(log, "NRI interface is disabled by configuration") == "" {
			t.Error("plugins may change containers")
		}
	})

	bootContainerd(ctx, t, h, servedFile)
	connection, err := grpc.NewClient("10.2.0.2:1338", grpc.WithTransportCredentials(insecure.NewCredentials()))
	requireNoError(t, err)
	defer connection.Close()

	t.Run("it gives the kubelet the version that it was built from, by which the node then names it", func(t *testing.T) {
		is, err := runtimeapi.NewRuntimeServiceClient(connection).Version(ctx, &runtimeapi.VersionRequest{})
		requireNoError(t, err)
		// The kubelet joins both values for the container runtime version in the status of the Node.
		got, want := is.RuntimeName+"://"+is.RuntimeVersion, "containerd://"+requiredVersion(t, "containerd", "github.com/containerd/containerd/v2")
		if got != want {
			t.Errorf("it is %s, and go.mod has %s", got, want)
		}
	})
	t.Run("RuntimeClasses may name both handlers", func(t *testing.T) {
		status, err := runtimeapi.NewRuntimeServiceClient(connection).Status(ctx, &runtimeapi.StatusRequest{Verbose: true})
		requireNoError(t, err)
		config := status.Info["config"]
		for _, want := range []string{`"runhcs-wcow-process":{"runtimeType":"io.containerd.runhcs.v1"`, `"docker":{"runtimeType":"io.containerd.runhcs.v1"`,
			`"defaultRuntimeName":"runhcs-wcow-process"`, `"binDirs":["C:\\k\\cni"]`} {
			if !strings.Contains(config, want) {
				t.Errorf("it has no %s: %s", want, config)
			}
		}
		for _, condition := range status.Status.Conditions {
			if condition.Type == runtimeapi.RuntimeReady && !condition.Status {
				t.Errorf("%+v", condition)
			}
		}
	})
	images := runtimeapi.NewImageServiceClient(connection)
	pull := func(image string) error {
		_, err := images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: image}})
		if err == nil {
			t.Errorf("%s was pulled", image)
		}
		return err
	}
	t.Run("the folder of a registry with a port is found on Windows, and its mirror is asked with its path and credentials", func(t *testing.T) {
		err := pull("registry.example.com:5000/org/app@" + digest)
		if want := "Basic bWlycm9yOnNlY3JldA== /v2/x/org/app/manifests/" + digest; !mirror.hasRequest(want) {
			t.Errorf("asked were %q; error %v", mirror.requests, err)
		}
	})
	for image, reason := range map[string]string{
		"blocked.example.com/app:v1":    "blocked-by-image-config.invalid",
		"other.example.com/app:v1":      "not-among-allowed-registries-of-image-config.invalid",
		"other.example.com:5000/app:v1": "not-among-allowed-registries-of-image-config.invalid",
		"registry.example.com:5000/a:b": "source-never-contacted-by-mirror-set.invalid",
	} {
		t.Run("the error of a pull of "+image+" says why", func(t *testing.T) {
			if err := pull(image); err == nil || !strings.Contains(err.Error(), reason) {
				t.Error(err)
			}
		})
	}
}

// requiredVersion returns the version of a dependency that a payload module requires.
func requiredVersion(t *testing.T, module, path string) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(repository, "payload", module, "go.mod"))
	requireNoError(t, err)
	for line := range strings.Lines(string(file)) {
		if words := strings.Fields(strings.TrimPrefix(line, "require ")); len(words) > 1 && words[0] == path {
			return words[1]
		}
	}
	t.Fatalf("payload/%s/go.mod does not require %s", module, path)
	return ""
}

// mirrorRegistries returns the registries of a cluster with a mirror that only this test uses.
func mirrorRegistries(mirror *registry) nodespec.Registries {
	return nodespec.Registries{OnlyAllowed: true, Hosts: []nodespec.Registry{
		{Host: "blocked.example.com", Blocked: true},
		{Host: "registry.example.com:5000", Allowed: true, NeverContact: true, Mirrors: []nodespec.Mirror{{
			Host: "10.2.255.254:" + mirror.port, Path: "x", Authorization: "bWlycm9yOnNlY3JldA==",
			Endpoint: nodespec.Endpoint{Insecure: true},
		}}},
	}}
}

// specOf returns the NodeSpec of a host in a cluster with these registries.
func specOf(t *testing.T, registries nodespec.Registries) nodespec.NodeSpec {
	t.Helper()
	spec, err := nodespec.Make(inputsOf(registries))
	requireNoError(t, err)
	return spec
}

// inputsOf returns the inputs for the NodeSpec of a host in a cluster with these registries.
func inputsOf(registries nodespec.Registries) nodespec.Inputs {
	file := func(name string) nodespec.PayloadFile {
		return nodespec.PayloadFile{Name: name, SHA256: strings.Repeat("0", 64)}
	}
	var payload []nodespec.Component
	for _, name := range []string{"containerd.exe", "containerd-shim-runhcs-v1.exe", "kubelet.exe", "kube-proxy.exe",
		"kube-log-runner.exe",
		"hybrid-overlay-node.exe", "windows_exporter.exe", "csi-proxy.exe"} {
		payload = append(payload, nodespec.Component{Name: strings.TrimSuffix(name, ".exe"),
			Files: []nodespec.PayloadFile{file(name)}})
	}
	return nodespec.Inputs{Kubernetes: "1.36",
		Cluster: nodespec.Cluster{
			Platform: "None", APIServerInternalURL: "https://api-int.lab.example.com:6443", APIServerCA: "CA",
			KubeletClientCA: "CA",
			ServiceCIDRs:    []string{"172.30.0.0/16"}, Registries: registries,
			Kubelet: nodespec.WorkerKubelet{ClusterDNS: []string{"172.30.0.10"}, ClusterDomain: "cluster.local"},
		},
		Instance: nodespec.Instance{Name: "win", NodeName: "win", NodeIP: "10.2.0.2"}, Payload: payload,
		Agent: file("wicd.exe"),
	}
}

// write writes the containerd files to a local directory and returns the local paths by Windows path.
func write(t *testing.T, spec nodespec.NodeSpec) map[string]string {
	t.Helper()
	dir, files := t.TempDir(), map[string]string{}
	add := func(windows string, content []byte) {
		path := filepath.Join(dir, fmt.Sprint(len(files)))
		requireNoError(t, os.WriteFile(path, content, 0o600))
		files[windows] = path
	}
	for _, file := range spec.Files {
		if nodespec.IsWithin(file.Path, `C:\k\containerd`) {
			add(file.Path, file.Bytes())
		}
		if file.Path == configFile {
			add(servedFile, append(file.Bytes(), served...))
		}
	}
	return files
}

// bootContainerd starts containerd as a plain process and returns the log until containerd has booted. The process ends
// with the test.
func bootContainerd(ctx context.Context, t *testing.T, h *wine.Host, config string) []string {
	t.Helper()
	return runUntil(ctx, t, h, program+" --config "+config+" --log-level debug", "containerd successfully booted")
}

func lineWith(lines []string, part string) string {
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, part) }); i >= 0 {
		return lines[i]
	}
	return ""
}

// registry is a fake mirror without images.
type registry struct {
	port     string
	mutex    sync.Mutex
	requests []string // "authorization path"
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{}
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	requireNoError(t, err)
	_, r.port, _ = net.SplitHostPort(listener.Addr().String())
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.requests = append(r.requests, request.Header.Get("Authorization")+" "+request.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	})}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
	return r
}

func (r *registry) hasRequest(request string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Contains(r.requests, request)
}
