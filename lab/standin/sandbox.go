package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/standin/kubelet"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

const shimExecutable = "containerd-shim-runhcs-v1.exe"

// containerRuntime is the container runtime of one machine. Pods keep running while containerd is stopped, as
// on a real host.
type containerRuntime struct {
	mu           sync.Mutex
	process      *node.Process // nil: containerd is not running
	cniDirectory string
	separate     bool               // the process belongs to the kubelet; see separate.go
	sandboxes    map[string]sandbox // by pod UID
}

// sandbox is a simulated pod: a shim process and an endpoint of the pod network.
type sandbox struct {
	shim     node.Child
	endpoint string // empty for pods with host network
	address  string
}

var _ kubelet.Runtime = (*containerRuntime)(nil)

func (t *table) runtimeOf(machine node.Machine) *containerRuntime {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.runtimes[machine.ID()]
	if r == nil {
		r = &containerRuntime{sandboxes: map[string]sandbox{}}
		t.runtimes[machine.ID()] = r
	}
	return r
}

func (r *containerRuntime) attachProcess(p *node.Process, cniDirectory string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process, r.cniDirectory = p, cniDirectory
}

func (r *containerRuntime) detachProcess(p *node.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == p {
		r.process = nil
	}
}

var errRuntimeDown = errors.New("rpc error: code = Unavailable desc = connection error: containerd does not run")

// RunPod implements kubelet.Runtime.
func (r *containerRuntime) RunPod(ctx context.Context, pod kubelet.Pod) (address string, fresh bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.sandboxes[pod.UID]; ok && s.shim.Alive() {
		return s.address, false, nil
	}
	executable, err := r.containerdPath(ctx)
	if err != nil {
		return "", false, err
	}
	if s, ok := r.recoverSandbox(ctx, pod); ok {
		r.sandboxes[pod.UID] = s
		return s.address, false, nil
	}
	s, err := r.startSandbox(ctx, pod, executable)
	if err != nil {
		return "", false, err
	}
	r.sandboxes[pod.UID] = s
	return s.address, true, nil
}

func (r *containerRuntime) startSandbox(ctx context.Context, pod kubelet.Pod, executable string) (sandbox, error) {
	var s sandbox
	if !pod.HostNetwork {
		network, err := r.podNetwork()
		if err != nil {
			return s, fmt.Errorf("failed to setup network for sandbox: %w", err)
		}
		s.endpoint = pod.UID + "_" + network
		endpoint, err := r.process.Host.Networks.CreateEndpoint(ctx, network, s.endpoint, "")
		if errors.Is(err, host.ErrExist) { // of a pod that a reboot or a kill ended
			endpoint, err = r.findEndpoint(ctx, s.endpoint)
		}
		if err != nil {
			return s, fmt.Errorf("failed to setup network for sandbox: %w", err)
		}
		s.address = endpoint.Address
	}
	var err error
	s.shim, err = r.process.Machine.Spawn(parentDirectory(executable)+`\`+shimExecutable, "-namespace", "k8s.io", "-id", pod.UID)
	if err != nil {
		return s, errors.Join(fmt.Errorf("failed to start shim: %w", err), r.deleteEndpoint(ctx, s))
	}
	return s, r.storeShimPID(pod, s.shim)
}

func (r *containerRuntime) findEndpoint(ctx context.Context, name string) (host.HNSEndpoint, error) {
	endpoints, err := r.process.Host.Networks.Endpoints(ctx)
	for _, e := range endpoints {
		if e.Name == name {
			return e, nil
		}
	}
	return host.HNSEndpoint{}, errors.Join(err, fmt.Errorf("endpoint %s: %w", name, host.ErrNotExist))
}

func (r *containerRuntime) deleteEndpoint(ctx context.Context, s sandbox) error {
	if s.endpoint == "" {
		return nil
	}
	err := r.process.Host.Networks.DeleteEndpoint(ctx, s.endpoint)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	return err
}

// podNetwork returns the name in the first configuration of the pod network, which the win-overlay plugin uses
// as name of the HNS network.
func (r *containerRuntime) podNetwork() (string, error) {
	drive := r.process.Machine
	names, err := drive.List(r.cniDirectory)
	if err != nil {
		return "", fmt.Errorf("cni config load failed: %w", err)
	}
	for _, file := range names {
		name := strings.ToLower(file)
		if !strings.HasSuffix(name, ".conf") && !strings.HasSuffix(name, ".conflist") && !strings.HasSuffix(name, ".json") {
			continue
		}
		data, err := drive.ReadFile(r.cniDirectory + `\` + file)
		if err != nil {
			return "", fmt.Errorf("cni config load failed: %w", err)
		}
		var config struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(data, &config); err != nil || config.Name == "" {
			return "", fmt.Errorf("cni config load failed: error parsing configuration %s: it names no network (%w)", file, err)
		}
		return config.Name, nil
	}
	return "", fmt.Errorf("cni config load failed: no network config found in %s", r.cniDirectory)
}

// StopPod implements kubelet.Runtime.
func (r *containerRuntime) StopPod(ctx context.Context, pod kubelet.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sandboxes[pod.UID]
	if !ok && r.separate {
		s, ok = r.recoverSandbox(ctx, pod)
	}
	if !ok {
		return nil
	}
	if _, err := r.containerdPath(ctx); err != nil {
		return err
	}
	if err := r.deleteEndpoint(ctx, s); err != nil {
		return fmt.Errorf("failed to tear down network for sandbox: %w", err)
	}
	s.shim.Exit(0)
	delete(r.sandboxes, pod.UID)
	return nil
}
