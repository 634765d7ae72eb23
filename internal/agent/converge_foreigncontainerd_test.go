package agent_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

const foreignDirectory = `C:\Program Files\containerd`

// foreignContainerd holds the pipe of containerd, and has an image in the directory of containerd.
func foreignContainerd(ctx context.Context, p *fake.Process) int {
	err := p.ServeRuntime(nodespec.ContainerdEndpoint, func() host.RuntimeStatus {
		return host.RuntimeStatus{Name: "containerd", Version: "foreign", Ready: true}
	})
	const layer = nodespec.LayersDirectory + `\7`
	if _, missing := p.Machine.Drive().ReadFile(layer + `\Files\License.txt`); err == nil && missing != nil {
		err = errors.Join(p.Machine.Drive().MkdirAll(layer+`\Files`), writeOnce(ctx, p, layer+`\Files\License.txt`), p.Machine.MakeLayer(layer),
			writeOnce(ctx, p, `C:\ProgramData\containerd\foreign-image`))
	}
	if err != nil {
		return 3
	}
	<-ctx.Done()
	return 0
}

func isForeignContainerd(p host.Process) bool { return strings.HasPrefix(p.Path, foreignDirectory) }

// withContainerd returns a host with a containerd installed by an administrator, as a service of the given
// name.
func withContainerd(t *testing.T, service string) *rig {
	t.Helper()
	r := newRig(t, func(o *fake.Options) {
		o.Features = map[string]host.FeatureState{nodespec.FeatureContainers: host.FeatureEnabled}
		o.Services = []host.ServiceConfig{{
			Name: service, DisplayName: "containerd", CommandLine: `"` + foreignDirectory + `\containerd.exe" --run-service`,
			StartType: host.StartAutomatic,
		}}
	})
	r.must(r.Drive().MkdirAll(foreignDirectory))
	r.must(r.Drive().MkdirAll(`C:\ProgramData\containerd`))
	r.must(r.Drive().WriteFile(foreignDirectory+`\containerd.exe`, programContent("containerd.exe", "foreign")))
	r.must(r.Boot(r.ctx))
	r.must(r.WaitFor(r.ctx, func(m *fake.Machine) bool {
		_, err := m.Drive().ReadFile(`C:\ProgramData\containerd\foreign-image`)
		return err == nil && slices.ContainsFunc(m.RunningProcesses(), isForeignContainerd)
	}))
	r.before = r.Snapshot()
	return r
}

// A foreign containerd that runs as the service containerd is replaced by the node's, and its service is
// restored when the host is removed.
//
func TestForeignContainerd_ReplacedAndRestored(t *testing.T) {
	t.Parallel()
	r := withContainerd(t, "containerd")
	r.configureHost()
	r.awaitServices()
	line, _ := r.run("verify")
	for _, check := range line.Result.Checks {
		if !check.Passed && !check.Advisory {
			t.Errorf("%s: %s", check.Name, check.Message)
		}
	}
	service, _ := r.Service("containerd")
	if release := r.fullSpec().Releases[1].Directory; service.State != host.ServiceRunning || !strings.HasPrefix(service.RunningCommandLine, release) {
		t.Errorf("the node's runtime is %s, %s", service.RunningCommandLine, service.State)
	}
	r.removeNode()
	r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return len(r.Snapshot().Processes) == len(r.before.Processes) }))
	after := r.Snapshot()
	// Both runtimes share one store: the layers that the node added remain in it.
	for _, layer := range []string{`\1`, `\2`} {
		maps.DeleteFunc(after.Files, func(path string, _ fake.FileSnapshot) bool {
			return nodespec.IsWithin(path, nodespec.LayersDirectory+layer)
		})
	}
	compareSnapshots(t, r.before, after)
}

// A foreign containerd under another service name occupies the pipe of the node's containerd, and the failure
// must name the pipe. This also applies to a shared store, where the node's containerd waits for its database
// until Windows ends the start. Removal restores the host, and the host becomes a node once the foreign service
// is stopped.
//
func TestForeignContainerd_FailureNamesOccupiedPipe(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig, restore func()){
		"its removal leaves that as it was": func(r *rig, _ func()) {
			r.removeNode()
			r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return len(r.Snapshot().Processes) == len(r.before.Processes) }))
			compareSnapshots(r.T, r.before, r.Snapshot())
		},
		"it becomes a node once that is stopped": func(r *rig, restore func()) {
			r.must(r.Host().Services.Stop(r.ctx, "my-containerd"))
			// The host restarts once for its name.
			r.must(r.Host().Services.SetStartType(r.ctx, "my-containerd", host.StartDisabled))
			restore()
			r.configureHost()
			r.awaitServices()
		},
	} {
		each := func(t *testing.T, sameStore bool) {
			t.Parallel()
			r, restore := withContainerd(t, "my-containerd"), func() {}
			if sameStore {
				restore = r.FailServiceStart("containerd", 1053) // ERROR_SERVICE_REQUEST_TIMEOUT
			}
			spec := newSpec(nil)
			spec.HostName = "" // no restart is needed
			line, _ := r.apply(spec)
			for line.Type == agentapi.TypeResult && r.satisfyNeeds(&spec, *line.Result) {
				line, _ = r.apply(spec)
			}
			const foreign = "Another container runtime on the host serves npipe://./pipe/containerd-containerd"
			switch {
			case line.Type == agentapi.TypeFailure:
				if line.Failure.Reason != agentapi.ReasonServiceFailed || !strings.Contains(line.Failure.Message, foreign) {
					t.Fatalf("%+v", line.Failure)
				}
			case !sameStore: // containerd stopped after the agent's query; verify must not accept the foreign one
				r.must(r.WaitFor(r.ctx, func(m *fake.Machine) bool {
					service, _ := m.Service("containerd")
					return service.State == host.ServiceStopped
				}))
				line, _ = r.run("verify")
				if !slices.ContainsFunc(line.Result.Checks, func(c agentapi.CheckResult) bool { return !c.Passed && strings.Contains(c.Message, foreign) }) {
					t.Fatalf("%+v", line.Result.Checks)
				}
			default:
				t.Fatalf("%+v", line)
			}
			end(r, restore)
		}
		t.Run(name, func(t *testing.T) { each(t, false) })
		t.Run(name+", with the same store", func(t *testing.T) { each(t, true) })
	}
}
