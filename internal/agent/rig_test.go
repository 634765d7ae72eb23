package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// rig is a machine with the actions of an operator.
type rig struct {
	*testing.T
	*fake.Machine
	ctx      context.Context
	clock    clock.WithTicker // of commands
	stepping *verbClock       // of commands run by runStepping
	ticking  *serviceClock
	versions versions
	before   fake.Snapshot
	details  []string        // of command steps
	requests map[string]bool // all observed certificate requests
	validity time.Duration   // of signed certificates
	program  []byte          // the agent of the operator
	// away blocks hybrid-overlay-node, like an unavailable API server; nil or closed: available.
	away atomic.Pointer[chan struct{}]
	// api is the API server of the agent's service; nil for none.
	api report.APIServer
	// override changes the agent's view of the host; nil changes nothing.
	override atomic.Pointer[func(*host.Host)]
	// former changes the view of the host for the first agent only.
	former atomic.Pointer[func(*host.Host)]
}

func newRig(t *testing.T, change ...func(*fake.Options)) *rig {
	t.Helper()
	r := &rig{T: t, clock: clock.RealClock{}, stepping: newVerbClock(), ticking: newServiceClock(), requests: map[string]bool{}, validity: time.Hour, program: agentProgram}
	options := fake.Options{Name: "WIN-OLD", Addresses: []string{"10.0.0.4"}, Programs: r.findProgram}
	for _, each := range change {
		each(&options)
	}
	r.Machine = fake.New(options)
	t.Cleanup(r.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	r.ctx = ctx
	return r
}

// overrideHost changes the view of the host for agents that start from now on.
func (r *rig) overrideHost(how func(*host.Host)) { r.override.Store(&how) }

// start boots the machine and records its state.
func (r *rig) start() *rig {
	r.Helper()
	r.must(r.Boot(r.ctx))
	if _, used := r.Service("backup"); used {
		for path, content := range map[string]string{
			`C:\k\kubelet.conf`: "password: canary\r\n", `C:\k\notes\todo.txt`: "buy milk", `C:\var\log\backup.log`: "fine",
			`C:\var\lib\kubelet\old`: "old", `C:\k\kubelet.exe`: "MZ own build",
		} {
			r.must(r.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
			r.must(r.Drive().WriteFile(path, []byte(content)))
		}
		h := r.Host()
		r.must(h.Environment.Set(r.ctx, "https_proxy", "http://own:1"))
		r.AddOutboundRule("ContainerLogsPort")
		r.must(h.Firewall.SetRule(r.ctx, host.FirewallRule{
			Name: "ContainerLogsPort", DisplayName: "own", Protocol: "TCP", LocalPort: 9, Enabled: true, Allow: true,
		}))
	}
	r.before = r.Snapshot()
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// uploadAgent uploads the agent like the operator.
func (r *rig) uploadAgent() string {
	r.Helper()
	path := nodespec.AgentPath(hexDigest(r.program))
	r.must(r.Drive().MkdirAll(nodespec.InboxRoot))
	r.must(r.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
	if _, err := r.Drive().Stat(path); err != nil {
		r.must(r.Drive().WriteFile(path, r.program))
	}
	return path
}

// run runs a command. It returns the last line, which is empty if the command was killed earlier, and the names
// of all started steps.
func (r *rig) run(args ...string) (last agentapi.Line, steps []string) {
	r.Helper()
	return r.runFrom(r.uploadAgent(), args...)
}

// runFrom runs a command of the agent at the path.
func (r *rig) runFrom(path string, args ...string) (last agentapi.Line, steps []string) {
	r.Helper()
	var out, errs bytes.Buffer
	_, err := r.Exec(r.ctx, fake.ExecRequest{Path: path, Args: args, Stdout: &out, Stderr: &errs})
	if err != nil && !errors.Is(err, fake.ErrProcessEnded) && !errors.Is(err, fake.ErrPoweredOff) {
		r.Fatal(err)
	}
	for _, text := range strings.Split(out.String(), "\n") {
		line, ok := agentapi.Decode([]byte(text))
		if !ok {
			continue
		}
		if last.Type == agentapi.TypeResult || last.Type == agentapi.TypeFailure {
			r.Fatalf("%s line after the last one", line.Type)
		}
		last = line
		if line.Type == agentapi.TypeStep && line.Step.State == agentapi.StepStarted {
			steps = append(steps, line.Step.Name)
		}
		if line.Type == agentapi.TypeStep && line.Step.State == agentapi.StepProgress {
			r.details = append(r.details, line.Step.Name+": "+line.Step.Detail)
		}
	}
	if last.Type == agentapi.TypeHello || last.Type == agentapi.TypePlan || last.Type == agentapi.TypeStep {
		last = agentapi.Line{} // killed
	}
	if last.Result != nil && last.Result.Facts != nil && last.Result.Facts.Identity.Request != "" {
		r.requests[last.Result.Facts.Identity.Request] = true
	}
	return last, steps
}

// apply sends the spec and the payload missing on the host, and runs the command.
func (r *rig) apply(spec nodespec.NodeSpec) (agentapi.Line, []string) {
	r.Helper()
	args := r.sendSpec(spec)
	if args == nil {
		return agentapi.Line{}, nil
	}
	return r.run(append([]string{"apply"}, args...)...)
}

// sendSpec uploads spec and payload and returns the flags; nil if the command facts was killed.
func (r *rig) sendSpec(spec nodespec.NodeSpec) []string {
	r.Helper()
	line, _ := r.run("facts")
	if line.Result == nil {
		return nil
	}
	data, err := spec.Encode()
	r.must(err)
	path := nodespec.InboxSpec(hexDigest(data))
	r.must(r.Drive().WriteFile(path, data))
	args := []string{"--spec", path}
	if lacking := missingDigests(spec, line.Result.Facts.Payload); len(lacking) > 0 {
		archive, err := packArchive(r.TempDir(), r.versions, lacking)
		r.must(err)
		path := nodespec.InboxPayload(hexDigest(archive))
		r.must(r.Drive().WriteFile(path, archive))
		args = append(args, "--payload", path)
	}
	return args
}

func missingDigests(spec nodespec.NodeSpec, present map[string]string) []string {
	var sums []string
	for _, release := range spec.Releases {
		for _, file := range release.Files {
			if _, exists := present[file.SHA256]; !exists {
				sums = append(sums, file.SHA256)
			}
		}
	}
	slices.Sort(sums)
	return slices.Compact(sums)
}

// configureHost repeats the actions of the operator until the host is a node, through restarts of the host and
// kills of the agent.
func (r *rig) configureHost() (steps []string) {
	r.Helper()
	return r.configureUntil(func() bool { return false })
}

// configureUntil is configureHost with an early end when ended returns true after a command.
func (r *rig) configureUntil(ended func() bool) (steps []string) {
	r.Helper()
	return r.configureTo(newSpec(r.versions), ended)
}

// configureTo is configureUntil with a spec of the test.
func (r *rig) configureTo(spec nodespec.NodeSpec, ended func() bool) (steps []string) {
	r.Helper()
	for range 30 {
		if ended() {
			return steps
		}
		boot := r.BootID()
		line, done := r.apply(spec)
		steps = append(steps, done...)
		switch line.Type {
		case agentapi.TypeRebooting:
			r.awaitBoot(boot)
		case agentapi.TypeFailure:
			r.Fatalf("apply: %s: %v", line.Failure.Reason, line.Failure)
		case agentapi.TypeResult:
			if !r.satisfyNeeds(&spec, *line.Result) {
				return steps
			}
		default: // killed
			r.awaitRunning()
		}
	}
	r.Fatal("the host does not become a node")
	return nil
}

// satisfyNeeds provides the input needed by the agent; false if none is needed.
func (r *rig) satisfyNeeds(spec *nodespec.NodeSpec, result agentapi.Result) bool {
	r.Helper()
	needs := result.Plan.Needs
	if slices.Contains(needs, nodespec.NeedCertificate) {
		spec.Identity.Certificate = r.signRequest(result.Facts.Identity.Request)
		return true
	}
	if slices.Contains(needs, nodespec.NeedPodSubnet) {
		spec.Network.PodSubnet = podSubnet
		return true
	}
	if len(needs) > 0 {
		r.Fatalf("needs %v", needs)
	}
	return false
}

// awaitBoot waits until the machine runs again after a restart. An agent that was killed after announcing the
// restart has not restarted the host: the operator detects that by the boot ID and repeats the command.
func (r *rig) awaitBoot(before string) {
	r.Helper()
	if r.IsRunning() && r.BootID() == before {
		return
	}
	r.must(r.WaitFor(r.ctx, func(m *fake.Machine) bool { return m.BootID() != before && m.IsRunning() }))
}

func (r *rig) awaitRunning() {
	r.Helper()
	r.must(r.WaitFor(r.ctx, (*fake.Machine).IsRunning))
}

// awaitServices waits until the services have finished their start.
func (r *rig) awaitServices() {
	r.Helper()
	r.must(r.WaitFor(r.ctx, func(m *fake.Machine) bool {
		for _, path := range []string{`C:\var\log\kubelet\kubelet.log`, `C:\var\log\containerd\containerd.log`, `C:\var\log\kube-proxy\kube-proxy.log`, serviceLog} {
			if _, err := m.Drive().Stat(path); err != nil {
				return false
			}
		}
		return r.countEntries("ready", nodespec.ServiceAgent) > 0 && r.countEntries(fake.KindProcess, "start "+newSpec(nil).Releases[1].Directory+`\shim.exe`) > 0
	}))
}

// removeNode restores the host through the agent, and deletes the agent's directory like the operator.
func (r *rig) removeNode() (steps []string) {
	r.Helper()
	for range 30 {
		boot := r.BootID()
		line, done := r.run("remove")
		steps = append(steps, done...)
		switch line.Type {
		case agentapi.TypeRebooting:
			r.awaitBoot(boot)
		case agentapi.TypeFailure:
			r.Fatalf("remove: %s: %v", line.Failure.Reason, line.Failure)
		case agentapi.TypeResult:
			if !line.Result.Removed {
				r.Fatal("remove ended without having removed everything")
			}
			r.must(r.Drive().RemoveAll(nodespec.AgentRoot))
			if rest, err := r.Drive().ReadDir(nodespec.Root); err == nil && len(rest) == 0 {
				r.must(r.Drive().Remove(nodespec.Root))
			}
			return steps
		default:
			r.awaitRunning()
		}
	}
	r.Fatal("the host is not given back")
	return nil
}

// runPlan returns the plan of the agent for the current state.
func (r *rig) runPlan(spec nodespec.NodeSpec) plan.Plan {
	r.Helper()
	line, _ := r.run(append([]string{"plan"}, r.sendSpec(spec)...)...)
	if line.Result == nil || line.Result.Plan == nil {
		r.Fatalf("no plan: %+v", line.Failure)
	}
	return *line.Result.Plan
}

// fullSpec returns the complete spec of the configured host.
func (r *rig) fullSpec() nodespec.NodeSpec {
	spec := newSpec(r.versions)
	spec.Network.PodSubnet = podSubnet
	return spec
}

func (r *rig) countEntries(kind fake.Kind, detail string) int {
	return len(r.Journal().Entries(func(e fake.Entry) bool { return e.Kind == kind && strings.Contains(e.Detail, detail) }))
}

func formatSteps(p plan.Plan) string {
	var lines []string
	for _, step := range p.Steps {
		lines = append(lines, fmt.Sprintf("%s (%s)", step.Name, step.Reason))
	}
	return strings.Join(lines, "\n")
}
