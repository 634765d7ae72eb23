package standin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/kubelet"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// If the processes of a machine share no memory, the kubelet runs pods itself while containerd is in the
// process table. The process ids of the shims are stored in the state directory of containerd, so that pods
// outlive the kubelet.

const (
	cniDirectory = `C:\k\cni\config`
	tasks        = `C:\ProgramData\containerd\state\io.containerd.runtime.v2.task\k8s.io`
)

// adoptProcess uses the process of the kubelet as runtime.
func (r *containerRuntime) adoptProcess(p *node.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process, r.cniDirectory, r.separate = p, cniDirectory, true
}

// containerdPath returns the path of the running containerd.
func (r *containerRuntime) containerdPath(ctx context.Context) (string, error) {
	if r.process == nil || !r.process.Machine.Alive() {
		return "", errRuntimeDown
	}
	if !r.separate {
		return r.process.Path, nil
	}
	processes, err := r.process.Host.Processes.List(ctx)
	for _, found := range processes {
		if strings.EqualFold(found.Name, "containerd.exe") {
			return found.Path, nil
		}
	}
	return "", errors.Join(err, errRuntimeDown)
}

// shimProcess is a shim that another process started.
type shimProcess struct {
	p   *node.Process
	pid int
}

func pidFile(uid string) string { return tasks + `\` + uid + `\shim.pid` }

// Alive implements node.Child.
func (s shimProcess) Alive() bool {
	processes, err := s.p.Host.Processes.List(context.Background())
	for _, found := range processes {
		if found.PID == s.pid && strings.EqualFold(found.Name, shimExecutable) {
			return true
		}
	}
	return err != nil // An unknown state is no reason to start another shim.
}

// Exit implements node.Child.
func (s shimProcess) Exit(int) {
	if s.Alive() {
		_ = s.p.Host.Processes.Kill(context.Background(), s.pid) // The shim has ended, or the next check finds it again.
	}
}

// recoverSandbox returns a pod with a running shim of an earlier kubelet.
func (r *containerRuntime) recoverSandbox(ctx context.Context, pod kubelet.Pod) (sandbox, bool) {
	content, err := r.process.Machine.ReadFile(pidFile(pod.UID))
	if !r.separate || err != nil {
		return sandbox{}, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return sandbox{}, false
	}
	s := sandbox{shim: shimProcess{r.process, pid}}
	if network, err := r.podNetwork(); err == nil && !pod.HostNetwork {
		s.endpoint = pod.UID + "_" + network
		endpoint, err := r.findEndpoint(ctx, s.endpoint)
		if err != nil {
			return sandbox{}, false
		}
		s.address = endpoint.Address
	}
	return s, s.shim.Alive()
}

// storeShimPID stores the process id of a pod's shim.
func (r *containerRuntime) storeShimPID(pod kubelet.Pod, shim node.Child) error {
	child, ok := shim.(interface{ PID() int })
	if !r.separate || !ok {
		return nil
	}
	if err := r.process.Machine.MkdirAll(parentDirectory(pidFile(pod.UID))); err != nil {
		return fmt.Errorf("keep the shim's process number: %w", err)
	}
	return r.process.Machine.WriteFile(pidFile(pod.UID), strconv.AppendInt(nil, int64(child.PID()), 10))
}

// runShim runs until it is killed, if started for a pod. R-091
func (t *table) runShim(ctx context.Context, p *node.Process, e payload.Executable) int {
	if len(p.Args) == 0 || p.Args[len(p.Args)-1] == "-v" {
		return printVersion(ctx, p, e)
	}
	return awaitStop(ctx)
}
