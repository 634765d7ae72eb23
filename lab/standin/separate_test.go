package standin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/standin/kubelet"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// realMachine assigns process ids to children, as a real machine does.
type realMachine struct{ simulated }

type realChild struct{ *fake.Process }

func (c realChild) PID() int { return c.Process.PID }

func (m realMachine) Spawn(path string, args ...string) (node.Child, error) {
	child, err := m.p.Spawn(path, args...)
	return realChild{child}, err
}

// kubeletProcess returns the kubelet's process on a machine where containerd also runs.
func kubeletProcess(t *testing.T) *node.Process {
	t.Helper()
	processes := make(chan *fake.Process, 1)
	m := fake.New(fake.Options{
		Name: "w1", Features: map[string]host.FeatureState{"Containers": host.FeatureEnabled},
		Programs: func([]byte) (fake.Program, error) {
			return func(ctx context.Context, p *fake.Process) int {
				if strings.HasSuffix(p.Path, "kubelet.exe") {
					processes <- p
				}
				return awaitStop(ctx)
			}, nil
		},
	})
	for path, content := range map[string]string{
		`C:\k\kubelet.exe`: "MZ", `C:\k\containerd\containerd.exe`: "MZ", `C:\k\containerd\` + shimExecutable: "MZ",
		cniDirectory + `\cni.conf`: `{"name":"net"}`,
	} {
		if err := errors.Join(m.Drive().MkdirAll(parentDirectory(path)), m.Drive().WriteFile(path, []byte(content))); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	for name, path := range map[string]string{"kubelet": `C:\k\kubelet.exe`,
		"containerd": `C:\k\containerd\containerd.exe`} {
		config := host.ServiceConfig{Name: name, CommandLine: path, StartType: host.StartManual}
		if err := errors.Join(m.Host().Services.Configure(t.Context(), config), m.Host().Services.Start(t.Context(),
			name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.CreateNetwork(host.HNSNetwork{Name: "net", Type: "Overlay", Subnet: "10.132.0.0/24"}); err != nil {
		t.Fatal(err)
	}
	p := (&table{}).newProcess(<-processes)
	p.Machine = realMachine{p.Machine.(simulated)}
	return p
}

func TestContainerRuntime_PodsSurviveKubeletRestart(t *testing.T) {
	p := kubeletProcess(t)
	pod := kubelet.Pod{UID: "u1", Namespace: "default", Name: "web"}
	start := func() *containerRuntime {
		r := &containerRuntime{sandboxes: map[string]sandbox{}}
		r.adoptProcess(p)
		return r
	}
	shims := func() (count int) {
		list, err := p.Host.Processes.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, process := range list {
			if process.Name == shimExecutable {
				count++
			}
		}
		return count
	}
	t.Run("a pod runs while containerd is in the process table", func(t *testing.T) {
		address, fresh, err := start().RunPod(t.Context(), pod)
		if err != nil || !fresh || address != "10.132.0.2" || shims() != 1 {
			t.Errorf("address %s, fresh %v, error %v, %d shims", address, fresh, err, shims())
		}
	})
	t.Run("a kubelet that starts again finds it running", func(t *testing.T) {
		address, fresh, err := start().RunPod(t.Context(), pod)
		if err != nil || fresh || address != "10.132.0.2" || shims() != 1 {
			t.Errorf("address %s, fresh %v, error %v, %d shims", address, fresh, err, shims())
		}
	})
	t.Run("and can end it", func(t *testing.T) {
		if err := start().StopPod(t.Context(), pod); err != nil || shims() != 0 {
			t.Errorf("error %v, %d shims", err, shims())
		}
		if endpoints, err := p.Host.Networks.Endpoints(t.Context()); err != nil || len(endpoints) != 0 {
			t.Errorf("endpoints %v, error %v", endpoints, err)
		}
	})
	t.Run("without containerd no pod runs", func(t *testing.T) {
		if err := p.Host.Services.Stop(t.Context(), "containerd"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := start().RunPod(t.Context(), pod); !errors.Is(err, errRuntimeDown) {
			t.Errorf("got error %v", err)
		}
	})
}
