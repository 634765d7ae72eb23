package containerd

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/cri"
	"github.com/windows-machine-config/wmco/lab/wine"
)

const configuration = `version = 4
root = '%[1]s/root'
state = '%[1]s/state'

[plugins.'io.containerd.server.v1.grpc']
address = '%[1]s/sock'

[plugins.'io.containerd.server.v1.ttrpc']
address = '%[1]s/sock.ttrpc'

[plugins.'io.containerd.cri.v1.images']
snapshotter = 'native'
use_local_image_pull = true

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '%[2]s'

[plugins.'io.containerd.cri.v1.runtime']
disable_apparmor = true
restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['%[1]s/cni/bin']
conf_dir = '%[1]s/cni/config'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = '%[3]s/runc'

[plugins.'io.containerd.nri.v1.nri']
disable = true
`

// network is the plugin of the pod network. It refuses to remove the network of pods that are listed in a file.
const network = `#!/bin/sh
cat >/dev/null
case $CNI_COMMAND in
ADD) echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0"}],"ips":[{"address":"10.132.1.5/24"}]}' ;;
DEL)
	name=${CNI_ARGS##*K8S_POD_NAME=}
	if grep -qx "${name%%%%;*}" '%[1]s/refused' 2>/dev/null; then
		echo '{"cniVersion":"1.0.0","code":100,"msg":"the network does not let go"}'
		exit 1
	fi ;;
esac
`

const networkConfiguration = `{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"network"}]}`

// containerd is a process of the real containerd.
type containerd struct {
	dir     string
	image   string
	process *os.Process
	cri     runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
}

var _ host.Sandboxes = (*containerd)(nil)

// List implements host.Sandboxes with the agent's code, over a socket instead of the pipe.
func (c *containerd) List(ctx context.Context, _ string) ([]host.Sandbox, error) {
	connection, err := c.dialSocket()
	if err != nil {
		return nil, err
	}
	return cri.ListSandboxes(ctx, connection)
}

// End implements host.Sandboxes.
func (c *containerd) End(ctx context.Context, _, id string) error {
	connection, err := c.dialSocket()
	if err != nil {
		return err
	}
	return cri.EndSandbox(ctx, connection, id)
}

func (c *containerd) dialSocket() (net.Conn, error) {
	return net.Dial("unix", filepath.Join(c.dir, "sock"))
}

// start runs containerd in a separate directory and mount namespace until the test ends. No pod exists at the
// start.
func start(t *testing.T) *containerd {
	t.Helper()
	if err := wine.Available(); err != nil {
		t.Skipf("SKIPPED: no pod was run by the real containerd: %v", err)
	}
	dir, err := os.MkdirTemp("", "cri") //nolint:usetesting // a socket's path must be short
	requireNoError(t, err)
	t.Cleanup(func() { requireNoError(t, os.RemoveAll(dir)) })
	bin, err := filepath.Abs(programs)
	requireNoError(t, err)
	c := &containerd{dir: dir, image: serveImage(t)}
	for _, directory := range []string{"cni/bin", "cni/config"} {
		requireNoError(t, os.MkdirAll(filepath.Join(dir, directory), 0o700))
	}
	for _, plugin := range []string{"network", "loopback"} {
		requireNoError(t, os.WriteFile(filepath.Join(dir, "cni/bin", plugin), fmt.Appendf(nil, network, dir), 0o700))
	}
	c.configureNetwork(t)
	config := filepath.Join(dir, "config.toml")
	requireNoError(t, os.WriteFile(config, fmt.Appendf(nil, configuration, dir, c.image, bin), 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	requireNoError(t, err)
	defer log.Close()
	command := exec.Command(filepath.Join(bin, "containerd"), "--config", config, "--log-level", "warn")
	command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	requireNoError(t, command.Start())
	c.process = command.Process
	t.Cleanup(func() {
		_ = c.process.Kill()
		_ = command.Wait()
		if t.Failed() {
			output, _ := os.ReadFile(log.Name())
			t.Logf("containerd said:\n%s", output)
		}
	})
	connection, err := grpc.NewClient("unix://"+filepath.Join(dir, "sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	requireNoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	c.cri, c.images = runtimeapi.NewRuntimeServiceClient(connection), runtimeapi.NewImageServiceClient(connection)
	c.waitForNetwork(t, true)
	_, err = c.images.PullImage(t.Context(), &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: c.image}})
	requireNoError(t, err)
	t.Cleanup(func() { c.endAll(t) })
	return c
}

// endAll ends the pods of a failed test, so that no process of a container outlives the test.
func (c *containerd) endAll(t *testing.T) {
	t.Helper()
	_ = c.process.Signal(syscall.SIGCONT)
	_ = os.Remove(filepath.Join(c.dir, "refused"))
	pods, err := c.List(context.Background(), "")
	for _, pod := range pods {
		if err == nil {
			err = c.End(context.Background(), "", pod.ID)
		}
	}
	requireNoError(t, err)
}

func (c *containerd) configureNetwork(t *testing.T) {
	t.Helper()
	requireNoError(t, os.WriteFile(c.networkFile(), []byte(networkConfiguration), 0o600))
}

func (c *containerd) networkFile() string { return filepath.Join(c.dir, "cni/config/pods.conflist") }

// waitForNetwork waits until containerd runs and has read the configuration of the pod network, or has lost it.
func (c *containerd) waitForNetwork(t *testing.T, ready bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		answer, err := c.cri.Status(ctx, &runtimeapi.StatusRequest{}, grpc.WaitForReady(true))
		for _, condition := range answer.GetStatus().GetConditions() {
			if condition.Type == runtimeapi.NetworkReady && condition.Status == ready {
				return
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the network is not ready=%t: %v, %v", ready, answer, err)
		case <-time.After(20 * time.Millisecond): // then retry
		}
	}
}

// stop stops all threads of containerd, and waits until none of them runs.
func (c *containerd) stop(t *testing.T) {
	t.Helper()
	requireNoError(t, c.process.Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.process.Pid))
		requireNoError(t, err)
		running := slices.ContainsFunc(threads, func(path string) bool {
			status, err := os.ReadFile(path)
			return err == nil && !strings.Contains(string(status), "State:\tT")
		})
		if !running {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("containerd does not stop")
		case <-time.After(time.Millisecond): // then check again
		}
	}
}

// run starts a pod with two containers.
func (c *containerd) run(t *testing.T, name string) (id string) {
	t.Helper()
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Namespace: "shop", Name: name, Uid: name},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{},
	}
	sandbox, err := c.cri.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	requireNoError(t, err)
	for i := range 2 {
		container, err := c.cri.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
			PodSandboxId: sandbox.PodSandboxId, SandboxConfig: config,
			Config: &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: fmt.Sprintf("c%d", i)}, Image: &runtimeapi.ImageSpec{Image: c.image},
				Linux: &runtimeapi.LinuxContainerConfig{},
			},
		})
		requireNoError(t, err)
		_, err = c.cri.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: container.ContainerId})
		requireNoError(t, err)
	}
	return sandbox.PodSandboxId
}

// podNames lists the pods with the agent's code.
func (c *containerd) podNames(t *testing.T) (names []string) {
	t.Helper()
	pods, err := c.List(t.Context(), "")
	requireNoError(t, err)
	for _, pod := range pods {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	return names
}

// podProcesses returns the processes of pods, including shims: all with a container's ID in the command line or
// environment.
func (c *containerd) podProcesses(t *testing.T, id string) (found []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cgroup")
	requireNoError(t, err)
	for _, path := range paths {
		content, _ := os.ReadFile(path) // the process may have ended
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if strings.Contains(string(content), id) || strings.Contains(string(line), id) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// listMounts returns the mounts in containerd's directory.
func (c *containerd) listMounts(t *testing.T) (found []string) {
	t.Helper()
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", c.process.Pid))
	requireNoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); strings.HasPrefix(words[1], c.dir+"/") {
			found = append(found, words[1])
		}
	}
	return found
}
