package agent_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// findProgram returns the fake programs of the test payload. The agent's executable runs the agent itself.
func (r *rig) findProgram(content []byte) (fake.Program, error) {
	words := strings.Fields(string(content[:min(len(content), 80)]))
	if len(words) < 3 || words[0] != "MZ" {
		return nil, errors.New("not a stand-in")
	}
	programs := map[string]fake.Program{
		"wicd.exe": r.runAgent, "containerd.exe": containerd, "shim.exe": idleProgram, "kubelet.exe": kubelet,
		"hybrid-overlay-node.exe": r.hybridOverlay, "kube-proxy.exe": kubeProxy, "dockerd.exe": dockerd,
		"windows-instance-config-daemon.exe": idleProgram, "idle.exe": idleProgram,
	}
	if known := programs[words[1]]; known != nil {
		return known, nil
	}
	return nil, fmt.Errorf("no stand-in for %s", words[1])
}

func (r *rig) runAgent(ctx context.Context, p *fake.Process) int {
	var ticking clock.WithTicker = r.ticking
	if p.Service == "" {
		ticking = r.clock // a test may change it while the service runs
	}
	overridden := p.Host
	if override := r.override.Load(); override != nil {
		(*override)(&overridden)
	}
	if override := r.former.Load(); override != nil && p.Path == nodespec.AgentPath(hexDigest(agentProgram)) {
		(*override)(&overridden)
	}
	return agent.Main(ctx, agent.Process{
		Host: overridden, Args: p.Args, Executable: p.Path, Version: "1.0.0", Stdout: p.Stdout, Stderr: p.Stderr,
		Clock: ticking, Rand: rand.Reader, API: r.api, Ready: func() { p.Machine.Journal().Append("ready", p.Service, 0) },
	})
}

func idleProgram(ctx context.Context, _ *fake.Process) int { <-ctx.Done(); return 0 }

func read(ctx context.Context, p *fake.Process, path string) (string, error) {
	file, err := p.Host.Files.Open(ctx, path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(file)
	return string(data), err
}

// writeOnce writes a file unless it exists.
func writeOnce(ctx context.Context, p *fake.Process, path string) error {
	if _, err := p.Host.Files.Stat(ctx, path); err == nil {
		return nil
	}
	return p.Host.Files.Write(ctx, path, bytes.NewReader([]byte("noted\n")), host.WriteOptions{})
}

// daemonPod is a DaemonSet pod, which survives a drain.
var daemonPod = host.Sandbox{ID: "0123abcd", Namespace: "monitoring", Name: "agent-x2z"}

// containerd mounts the layer of a pod, and creates an image and a shim that outlive containerd.
func containerd(ctx context.Context, p *fake.Process) int {
	if strings.HasPrefix(p.Path, foreignDirectory) {
		return foreignContainerd(ctx, p)
	}
	if config, err := read(ctx, p, `C:\k\containerd\containerd_conf.toml`); err != nil || strings.Contains(config, "broken") {
		return 2
	}
	err := p.ServeRuntime("npipe://./pipe/containerd-containerd", func() host.RuntimeStatus {
		return host.RuntimeStatus{Name: "containerd", Version: "v1", Ready: true}
	})
	if err = errors.Join(err, writeOnce(ctx, p, `C:\ProgramData\containerd\image`), writeOnce(ctx, p, `C:\var\log\containerd\containerd.log`)); err != nil {
		return 3
	}
	shim := p.Path[:strings.LastIndexByte(p.Path, '\\')] + `\shim.exe`
	pod, err := p.Spawn(shim)
	if err != nil {
		return 4
	}
	const layer, image = nodespec.LayersDirectory + `\2\sandbox.vhdx`, nodespec.LayersDirectory + `\1`
	drive := p.Machine.Drive()
	if err = errors.Join(drive.MkdirAll(nodespec.LayersDirectory+`\2`), drive.MkdirAll(image+`\Files`)); err == nil {
		err = errors.Join(writeOnce(ctx, p, layer), writeOnce(ctx, p, image+`\Files\License.txt`))
	}
	if err == nil {
		err = errors.Join(p.Machine.MountSandbox(nodespec.ContainerdEndpoint, daemonPod, pod, layer), p.Machine.MakeLayer(image))
	}
	if err != nil {
		return 5
	}
	<-ctx.Done()
	return 0
}

func kubelet(ctx context.Context, p *fake.Process) int {
	if pair, err := read(ctx, p, pki+`\kubelet-client-current.pem`); err != nil || !strings.Contains(pair, "PRIVATE KEY") {
		return 2
	}
	err := p.ServeLocal(10248, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	if err = errors.Join(err, writeOnce(ctx, p, `C:\var\log\kubelet\kubelet.log`)); err != nil {
		return 3
	}
	<-ctx.Done()
	return 0
}

// hybridOverlay creates its missing networks as soon as the API server provides the node's subnet.
func (r *rig) hybridOverlay(ctx context.Context, p *fake.Process) int {
	if away := r.away.Load(); away != nil {
		select {
		case <-*away:
		case <-ctx.Done():
			return 0
		}
	}
	for _, network := range []host.HNSNetwork{
		{Name: "BaseOVNKubernetesHybridOverlayNetwork", Type: "Overlay", Subnet: "100.64.0.0/30"},
		{Name: hnsNetwork, Type: "Overlay", Subnet: podSubnet},
	} {
		if err := p.CreateNetwork(network); err != nil && !errors.Is(err, host.ErrExist) {
			return 2
		}
	}
	<-ctx.Done()
	return 0
}

func kubeProxy(ctx context.Context, p *fake.Process) int {
	config, err := read(ctx, p, `C:\k\kube-proxy.conf`)
	if err != nil || strings.Contains(config, "${") || !strings.Contains(config, "vip: 10.132.1.2\n") {
		return 2
	}
	if writeOnce(ctx, p, `C:\var\log\kube-proxy\kube-proxy.log`) != nil {
		return 3
	}
	<-ctx.Done()
	return 0
}
