package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// dockerd creates Docker's network, and starts a container process that outlives dockerd.
func dockerd(ctx context.Context, p *fake.Process) int {
	err := p.CreateNetwork(host.HNSNetwork{Name: "nat", Type: "NAT", Subnet: "172.20.0.0/16"})
	if err != nil && !errors.Is(err, host.ErrExist) {
		return 2
	}
	if err := writeOnce(ctx, p, `C:\ProgramData\docker\image`); err != nil {
		return 3
	}
	if _, err := p.Spawn(`C:\Program Files\Docker\shim.exe`); err != nil {
		return 4
	}
	<-ctx.Done()
	return 0
}

const dockerService = "docker"

// withDocker returns a host with an image that includes Docker, like 2019-Datacenter-with-Containers.
func withDocker(t *testing.T, change ...func(*fake.Options)) *rig {
	t.Helper()
	docker := func(o *fake.Options) {
		o.System = fake.WindowsServer2019()
		o.Features = map[string]host.FeatureState{nodespec.FeatureContainers: host.FeatureEnabled}
		o.Services = []host.ServiceConfig{{
			Name: dockerService, DisplayName: "Docker Engine", CommandLine: `"C:\Program Files\Docker\dockerd.exe" --run-service`,
			StartType: host.StartAutomatic,
		}}
	}
	r := newRig(t, append([]func(*fake.Options){docker}, change...)...)
	r.must(r.Drive().MkdirAll(`C:\Program Files\Docker`))
	r.must(r.Drive().MkdirAll(`C:\ProgramData\docker`))
	for _, name := range []string{"dockerd.exe", "shim.exe"} {
		r.must(r.Drive().WriteFile(`C:\Program Files\Docker\`+name, programContent(name, "v20")))
	}
	r.must(r.Boot(r.ctx))
	r.must(r.WaitFor(r.ctx, func(m *fake.Machine) bool {
		return slices.ContainsFunc(m.RunningProcesses(), func(p host.Process) bool { return p.Path == `C:\Program Files\Docker\shim.exe` })
	}))
	r.before = r.Snapshot()
	return r
}

// A host with Docker runs its pods in containerd. Docker is not changed and still works on the restored host.
//
func TestDockerHost_DockerUnchanged(t *testing.T) {
	t.Parallel()
	r := withDocker(t)
	steps := r.configureHost()
	r.awaitServices()

	t.Run("no step is about Docker", func(t *testing.T) {
		for _, step := range steps {
			if strings.Contains(strings.ToLower(step), "docker") || strings.HasSuffix(step, " nat") || strings.HasPrefix(step, "EnableFeature") {
				t.Error(step)
			}
		}
	})
	t.Run("containerd is the node's runtime", func(t *testing.T) {
		line, _ := r.run("verify")
		for _, check := range line.Result.Checks {
			if !check.Passed && !check.Advisory {
				t.Errorf("%s: %s", check.Name, check.Message)
			}
			if check.Name == "ContainerRuntimeReady" && !strings.HasPrefix(check.Message, "containerd ") {
				t.Errorf("the runtime is %s", check.Message)
			}
		}
		service, _ := r.Service("containerd")
		if release := r.fullSpec().Releases[1].Directory; service.State != host.ServiceRunning || !strings.HasPrefix(service.RunningCommandLine, release) {
			t.Errorf("%s %s", service.State, service.RunningCommandLine)
		}
	})
	t.Run("Docker runs on", func(t *testing.T) {
		service, exists := r.Service(dockerService)
		was := r.before.Services[dockerService]
		if !exists || service.State != host.ServiceRunning || service.CommandLine != was.Config.CommandLine || service.StartType != was.Config.StartType {
			t.Errorf("%+v", service)
		}
	})
	t.Run("removal leaves Docker with its container, its network and its images, and the feature that it needs", func(t *testing.T) {
		pid := r.dockerPID()
		reboots := r.Journal().Count(fake.KindReboot)
		steps := r.removeNode()
		// Restoring the host name takes one restart.
		if slices.Contains(steps, "DisableFeature "+nodespec.FeatureContainers) || r.Journal().Count(fake.KindReboot) != reboots+1 {
			t.Error(steps)
		}
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return len(r.Snapshot().Processes) == len(r.before.Processes) }))
		compareSnapshots(t, r.before, r.Snapshot())
		if r.dockerPID() == 0 || pid == 0 {
			t.Error("Docker does not run")
		}
		if n := r.countEntries(fake.KindProcess, `kill "C:\Program Files\Docker`); n != 0 {
			t.Errorf("%d processes of Docker were ended", n)
		}
	})
}

func (r *rig) dockerPID() int {
	service, _ := r.Service(dockerService)
	return service.PID
}

// Without a host name to set and a feature to enable, neither joining nor removal restarts a host with Docker.
//
func TestDockerHost_NotRestarted(t *testing.T) {
	t.Parallel()
	r := withDocker(t)
	pid := r.dockerPID()
	spec := newSpec(nil)
	spec.HostName = ""
	line, _ := r.apply(spec)
	for r.satisfyNeeds(&spec, *line.Result) {
		line, _ = r.apply(spec)
	}
	r.awaitServices()
	r.removeNode()
	if n := r.Journal().Count(fake.KindReboot); n != 0 || r.dockerPID() != pid {
		t.Errorf("%d restarts; Docker was process %d and is %d", n, pid, r.dockerPID())
	}
	compareSnapshots(t, r.before, r.Snapshot())
}
