package standin

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/payload"
)

// testHost is a simulated host with the executables of a node in C:\k.
type testHost struct {
	*fake.Machine
	t   *testing.T
	pki string // the real directory behind the kubelet's pki

	mu    sync.Mutex
	ports map[int]net.Addr // the real listening addresses of host ports
}

const containerdConfigFile = `version = 3
root = 'C:\ProgramData\containerd\root'
state = 'C:\ProgramData\containerd\state'
[grpc]
  address = '\\.\pipe\containerd-containerd'
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['C:\k\cni']
  conf_dir = 'C:\k\cni\config'
`

func newHost(t *testing.T, name string, options Options) *testHost {
	t.Helper()
	h := &testHost{t: t, pki: filepath.Join(t.TempDir(), "pki"), ports: map[int]net.Addr{}}
	h.Machine = fake.New(fake.Options{
		Name: name, Addresses: []string{"10.9.0.5"}, System: fake.WindowsServer2022(), Programs: Programs(options),
		Features: map[string]host.FeatureState{"Containers": host.FeatureEnabled},
		Listen: func(ctx context.Context, port int) (net.Listener, error) {
			listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
			if err == nil {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.ports[port] = listener.Addr()
			}
			return listener, err
		},
	})
	h.MountDirectory(`C:\var\lib\kubelet\pki`, h.pki)
	for _, dir := range []string{`C:\k\cni\config`, `C:\k\containerd`, `C:\var\log\containerd`, `C:\var\log\kubelet`,
		`C:\var\log\hybrid-overlay`, `C:\var\lib\kubelet\pki`} {
		if err := h.Drive().MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for path, version := range map[string]string{
		`C:\k\containerd\containerd.exe`: "v2.4.2", `C:\k\containerd\containerd-shim-runhcs-v1.exe`: "v0.14.1",
		`C:\k\kubelet.exe`:    "v1.36.3",
		`C:\k\kube-proxy.exe`: "v1.36.3", `C:\k\kube-log-runner.exe`: "v0.36.3", `C:\k\hybrid-overlay-node.exe`: "v1.0.0",
		`C:\k\windows_exporter.exe`: "v0.31.8", `C:\k\csi-proxy.exe`: "v1.3.0",
	} {
		file := path[strings.LastIndexByte(path, '\\')+1:]
		e := payload.Executable{Component: strings.TrimSuffix(file, ".exe"), File: file, Version: version, Size: 8 << 10}
		h.write(path, string(e.Content()))
	}
	if err := h.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func (h *testHost) write(path, content string) {
	h.t.Helper()
	if err := h.Drive().WriteFile(path, []byte(content)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testHost) read(path string) string {
	content, err := h.Drive().ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// configureService configures a service; start starts the service and waits until it runs.
func (h *testHost) configureService(name string, words ...string) {
	h.t.Helper()
	config := host.ServiceConfig{Name: name, CommandLine: host.CommandLine(words...), StartType: host.StartManual}
	if err := h.Host().Services.Configure(h.t.Context(), config); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testHost) start(name string) {
	h.t.Helper()
	if err := h.Host().Services.Start(h.t.Context(), name); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testHost) stop(name string) {
	h.t.Helper()
	if err := h.Host().Services.Stop(h.t.Context(), name); err != nil {
		h.t.Fatal(err)
	}
}

// awaitMachine waits for a condition of the machine.
func (h *testHost) awaitMachine(what string, condition func() bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 3*time.Minute)
	defer cancel()
	if err := h.WaitFor(ctx, func(*fake.Machine) bool { return condition() }); err != nil {
		h.t.Fatalf("%s: %v", what, err)
	}
}

// pollUntil polls a condition that is not part of the machine.
func (h *testHost) pollUntil(condition func(context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(h.t.Context(), 20*time.Millisecond, 3*time.Minute, true, condition)
}

func (h *testHost) isServiceRunning(name string) bool {
	service, ok := h.Service(name)
	return ok && service.State == host.ServiceRunning
}

// run runs a program to its end and returns its exit code and output.
func (h *testHost) run(words ...string) (int, string) {
	h.t.Helper()
	var output strings.Builder
	ctx, cancel := context.WithTimeout(h.t.Context(), 3*time.Minute)
	defer cancel()
	code, err := h.Exec(ctx, fake.ExecRequest{Path: words[0], Args: words[1:], Stdout: &output, Stderr: &output})
	if err != nil {
		h.t.Fatalf("%v: %v; output: %s", words, err, output.String())
	}
	return code, output.String()
}

func (h *testHost) portAddress(port int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ports[port] == nil {
		return ""
	}
	return h.ports[port].String()
}
