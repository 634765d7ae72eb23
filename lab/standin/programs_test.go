package standin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/payload"
)

const pipe = "npipe://./pipe/containerd-containerd"

func (h *testHost) startContainerd() {
	h.write(`C:\k\containerd\config.toml`, containerdConfigFile)
	h.configureService("containerd", `C:\k\containerd\containerd.exe`, "--config", `C:\k\containerd\config.toml`,
		"--log-file", `C:\var\log\containerd\containerd.log`, "--run-service")
	h.start("containerd")
	h.awaitMachine("containerd serves", func() bool {
		status, err := h.Host().Probes.ContainerRuntime(h.t.Context(), pipe)
		return err == nil && status.Ready
	})
}

//
func TestContainerd(t *testing.T) {
	t.Run("a running containerd tells its true version and leaves its folders", func(t *testing.T) {
		h := newHost(t, "win", Options{})
		h.startContainerd()
		status, err := h.Host().Probes.ContainerRuntime(t.Context(), pipe)
		if err != nil || status != (host.RuntimeStatus{Name: "containerd", Version: "v2.4.2", Ready: true}) {
			t.Errorf("got %+v, error %v", status, err)
		}
		if _, err := h.Drive().Stat(`C:\ProgramData\containerd\root\io.containerd.metadata.v1.bolt\meta.db`); err != nil {
			t.Error(err)
		}
		h.stop("containerd")
		if _, err := h.Host().Probes.ContainerRuntime(t.Context(), pipe); err == nil {
			t.Error("a stopped containerd answers")
		}
		if log := h.read(`C:\var\log\containerd\containerd.log`); !strings.Contains(log, "successfully booted") ||
			!strings.Contains(log, "stopped") {
			t.Errorf("log: %s", log)
		}
	})
	refusals := map[string]struct{ config, want string }{
		"without its configuration file":          {"", "failed to load TOML"},
		"with a configuration that is no TOML":    {"version = [", "failed to load TOML"},
		"with a configuration of another version": {"version = 1", "unsupported config version 1"},
	}
	for name, test := range refusals {
		t.Run("it ends "+name, func(t *testing.T) {
			h := newHost(t, "win", Options{})
			if test.config != "" {
				h.write(`C:\k\containerd\config.toml`, test.config)
			}
			code, output := h.run(`C:\k\containerd\containerd.exe`, "--config", `C:\k\containerd\config.toml`)
			if code == 0 || !strings.Contains(output, test.want) {
				t.Errorf("exit code %d, output %s", code, output)
			}
		})
	}
	t.Run("it ends when the folder of its log is not there", func(t *testing.T) {
		h := newHost(t, "win", Options{})
		h.write(`C:\k\containerd\config.toml`, containerdConfigFile)
		code, output := h.run(`C:\k\containerd\containerd.exe`, "--config", `C:\k\containerd\config.toml`,
			"--log-file", `C:\no\such.log`)
		if code == 0 || !strings.Contains(output, "open log file") {
			t.Errorf("exit code %d, output %s", code, output)
		}
	})
	t.Run("as a service it must be told so", func(t *testing.T) {
		h := newHost(t, "win", Options{})
		h.write(`C:\k\containerd\config.toml`, containerdConfigFile)
		h.configureService("containerd", `C:\k\containerd\containerd.exe`, "--config", `C:\k\containerd\config.toml`)
		_ = h.Host().Services.Start(t.Context(), "containerd") // Windows may or may not see it running before it ends.
		h.awaitMachine("containerd ends", func() bool { return !h.isServiceRunning("containerd") })
	})
}

func TestProgramTable(t *testing.T) {
	find := Programs(Options{})
	t.Run("a file that is nothing is no program", func(t *testing.T) {
		if _, err := find([]byte("MZ and nothing more")); err == nil {
			t.Error("it was taken for one")
		}
	})
	t.Run("a stand-in that was cut off is no program", func(t *testing.T) {
		content := payload.Executable{Component: "kubelet", File: "kubelet.exe", Version: "v1", Size: 5000}.Content()
		if _, err := find(content[:4999]); err == nil {
			t.Error("it was taken for one")
		}
	})
	t.Run("the lab's payload has no executable that is not known", func(t *testing.T) {
		withAgent := Programs(Options{Agent: func(string) fake.Program { return nil }})
		p, err := payload.Generate(t.TempDir(), "", "v10.0.0", payload.Options{SizePercent: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Manifest().Components {
			for _, f := range c.Files {
				r, err := p.Open(f.SHA256)
				if err != nil {
					t.Fatal(err)
				}
				content, err := io.ReadAll(r)
				if err := errors.Join(err, r.Close()); err != nil {
					t.Fatal(err)
				}
				if _, err := withAgent(content); err != nil {
					t.Errorf("%s: %v", f.Path, err)
				}
			}
		}
	})
	t.Run("executables tell their version", func(t *testing.T) {
		h := newHost(t, "win", Options{})
		if code, output := h.run(`C:\k\kubelet.exe`, "--version"); code != 0 || !strings.Contains(output, "v1.36.3") {
			t.Errorf("exit code %d, output %s", code, output)
		}
	})
}

//
func TestExporter(t *testing.T) {
	h := newHost(t, "win", Options{})
	if err := h.Host().Firewall.SetRule(t.Context(), host.FirewallRule{Name: "exporter", DisplayName: "exporter",
		Protocol: "TCP", LocalPort: 9182, Enabled: true, Allow: true}); err != nil {
		t.Fatal(err)
	}
	h.configureService("windows_exporter", `C:\k\windows_exporter.exe`, "--collectors.enabled",
		"cpu,logical_disk,memory,service", "--collector.net.enabled=x", "--web.listen-address", ":9182")
	h.start("windows_exporter")
	if err := h.pollUntil(func(context.Context) (bool, error) { return h.portAddress(9182) != "", nil }); err != nil {
		t.Fatal(err)
	}
	status, body, err := h.Host().Probes.HTTPGet(t.Context(), "http://127.0.0.1:9182/metrics", nil)
	if err != nil || status != http.StatusOK || !strings.Contains(body, "windows_exporter_build_info") {
		t.Errorf("status %d, error %v, body %s", status, err, body)
	}
	response, err := http.Get("http://" + h.portAddress(9182) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if strings.Contains(string(all), "windows_net_") {
		t.Error("there are series of a collector that is not enabled")
	}
	for _, want := range []string{`windows_exporter_collector_success{collector="cpu"} 1`, "windows_cpu_time_total{", "# TYPE windows_cpu_time_total counter\n",
		"windows_memory_physical_total_bytes",
		`windows_service_state{name="windows_exporter",state="running"} 1`, "windows_logical_disk_free_bytes"} {
		if err != nil || !strings.Contains(string(all), want) {
			t.Errorf("no %s (error %v)", want, err)
		}
	}
	h.stop("windows_exporter")
	if code, output := h.run(`C:\k\windows_exporter.exe`, "--no-such-flag"); code == 0 ||
		!strings.Contains(output, "no-such-flag") {
		t.Errorf("exit code %d, output %s", code, output)
	}
}

const kubeconfigFile = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://api-int.example.org:6443"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

//
func TestKubeProxy(t *testing.T) {
	config := func(vip string) string {
		return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: kernelspace
clientConnection: {kubeconfig: 'C:\k\kubeconfig'}
featureGates: {WinDSR: true, WinOverlay: true}
winkernel: {networkName: OVNKubernetesHybridOverlayNetwork, sourceVip: "` + vip + `", enableDSR: true}
`
	}
	refused := func(t *testing.T, h *testHost, want string, args ...string) {
		t.Helper()
		code, output := h.run(append([]string{`C:\k\kube-proxy.exe`}, args...)...)
		if code == 0 || !strings.Contains(output, want) {
			t.Errorf("exit code %d, output %s; want %s", code, output, want)
		}
	}
	h := newHost(t, "win", Options{})
	file := "--config=" + `C:\k\kube-proxy.yaml`
	refused(t, h, "failed to load config", file)
	h.write(`C:\k\kube-proxy.yaml`, config(""))
	refused(t, h, "read kubeconfig", file)
	h.write(`C:\k\kubeconfig`, kubeconfigFile)
	refused(t, h, "could not find the HNS network", file)
	if err := h.CreateNetwork(host.HNSNetwork{Name: overlayNetwork, Type: "Overlay",
		Subnet: "10.132.0.0/23"}); err != nil {
		t.Fatal(err)
	}
	refused(t, h, "source-vip flag not set", file)
	h.write(`C:\k\kube-proxy.yaml`, config("10.132.0.9"))
	refused(t, h, "belongs to no HNS endpoint", file)
	refused(t, h, "unknown flag", "--no-such-flag")
	refused(t, h, "source-vip flag not set", "--kubeconfig", `C:\k\kubeconfig`, "--network-name", overlayNetwork,
		"--enable-dsr", "--proxy-mode=kernelspace")

	vip, err := h.Host().Networks.CreateEndpoint(t.Context(), overlayNetwork, "VIPEndpoint", "")
	if err != nil {
		t.Fatal(err)
	}
	h.write(`C:\k\kube-proxy.yaml`, config(vip.Address))
	refused(t, h, "is not attached to this host", file)
	if err := h.Host().Networks.AttachEndpoint(t.Context(), vip.Name); err != nil {
		t.Fatal(err)
	}
	h.configureService("kube-proxy", `C:\k\kube-log-runner.exe`, `-log-file=C:\var\log\kubelet\kube-proxy.log`,
		`C:\k\kube-proxy.exe`, file, "--windows-service")
	h.start("kube-proxy")
	h.awaitMachine("it is healthy", func() bool {
		status, _, err := h.Host().Probes.HTTPGet(t.Context(), "http://127.0.0.1:10256/healthz", nil)
		return err == nil && status == http.StatusOK
	})
}

func TestKubeLogRunner(t *testing.T) {
	start := func(t *testing.T) *testHost {
		h := newHost(t, "win", Options{})
		h.configureService("csi-proxy", `C:\k\kube-log-runner.exe`, `-log-file=C:\var\log\kubelet\csi.log`, "-log-file-size=100M",
			`C:\k\csi-proxy.exe`, "-windows-service")
		h.start("csi-proxy")
		h.awaitMachine("the child runs", func() bool { return h.findProcess("csi-proxy.exe") != nil })
		return h
	}
	t.Run("the program is a process of its own, and ends with the service", func(t *testing.T) {
		h := start(t)
		if err := h.Host().Files.Remove(t.Context(), `C:\k\csi-proxy.exe`); !errors.Is(err, host.ErrInUse) {
			t.Errorf("remove the running executable: %v", err)
		}
		h.stop("csi-proxy")
		h.awaitMachine("the child is gone", func() bool { return h.findProcess("csi-proxy.exe") == nil })
	})
	t.Run("when the program is killed the service ends", func(t *testing.T) {
		h := start(t)
		if err := h.Host().Processes.Kill(t.Context(), h.findProcess("csi-proxy.exe").PID); err != nil {
			t.Fatal(err)
		}
		h.awaitMachine("the service ends", func() bool { return !h.isServiceRunning("csi-proxy") })
	})
	t.Run("what the program says is in the log", func(t *testing.T) {
		h := newHost(t, "win", Options{})
		code, _ := h.run(`C:\k\kube-log-runner.exe`, `-log-file=C:\var\log\kubelet\csi.log`,
			`C:\k\csi-proxy.exe`, "--no-such-flag")
		if log := h.read(`C:\var\log\kubelet\csi.log`); code != 1 || !strings.Contains(log, "no-such-flag") {
			t.Errorf("exit code %d, log %s", code, log)
		}
	})
	t.Run("a program that is not there is an error", func(t *testing.T) {
		h := newHost(t, "win", Options{})
		if code, output := h.run(`C:\k\kube-log-runner.exe`, `C:\k\nothing.exe`); code == 0 ||
			!strings.Contains(output, "starting command") {
			t.Errorf("exit code %d, output %s", code, output)
		}
	})
}

func (h *testHost) findProcess(name string) *host.Process {
	processes, err := h.Host().Processes.List(h.t.Context())
	if err != nil {
		h.t.Error(err)
	}
	for i := range processes {
		if processes[i].Name == name {
			return &processes[i]
		}
	}
	return nil
}
