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
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// rig is a machine and what an operator does to it.
type rig struct {
	*testing.T
	*fake.Machine
	ctx      context.Context
	clock    clock.WithTicker // of verbs
	stepping *verbClock       // of verbs that runStepping runs
	ticking  *serviceClock
	versions versions
	before   fake.Snapshot
	details  []string        // of the steps of verbs
	requests map[string]bool // all certificate requests that were seen
	validity time.Duration   // of the certificates that are signed
	program  []byte          // the agent that the operator has
	// away holds hybrid-overlay-node up, as an API server does that is away; nil or closed: it is there.
	away atomic.Pointer[chan struct{}]
	// api is the API server of the agent's service; nil for none.
	api report.APIServer
	// bent changes what the agent sees of the host; nil changes nothing.
	bent atomic.Pointer[func(*host.Host)]
	// former changes what the first agent sees of the host, and no other.
	former atomic.Pointer[func(*host.Host)]
}

func newRig(t *testing.T, change ...func(*fake.Options)) *rig {
	t.Helper()
	r := &rig{T: t, clock: clock.RealClock{}, stepping: newVerbClock(), ticking: newServiceClock(), requests: map[string]bool{}, validity: time.Hour, program: agentProgram}
	options := fake.Options{Name: "WIN-OLD", Addresses: []string{"10.0.0.4"}, Programs: r.table}
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

// bend changes what agents that begin from now on see of the host.
func (r *rig) bend(how func(*host.Host)) { r.bent.Store(&how) }

// start boots the machine and remembers what it is like.
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

// push brings the agent, as the operator does.
func (r *rig) push() string {
	r.Helper()
	path := nodespec.AgentPath(sum(r.program))
	r.must(r.Drive().MkdirAll(nodespec.InboxRoot))
	r.must(r.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
	if _, err := r.Drive().Stat(path); err != nil {
		r.must(r.Drive().WriteFile(path, r.program))
	}
	return path
}

// run runs a verb and returns its last line, which is empty when the verb was killed before one, and all names of steps
// that it began.
func (r *rig) run(args ...string) (last verb.Line, steps []string) {
	r.Helper()
	return r.runFrom(r.push(), args...)
}

// runFrom runs a verb of the agent that lies at the path.
func (r *rig) runFrom(path string, args ...string) (last verb.Line, steps []string) {
	r.Helper()
	var out, errs bytes.Buffer
	_, err := r.Exec(r.ctx, fake.ExecRequest{Path: path, Args: args, Stdout: &out, Stderr: &errs})
	if err != nil && !errors.Is(err, fake.ErrProcessEnded) && !errors.Is(err, fake.ErrPoweredOff) {
		r.Fatal(err)
	}
	for _, text := range strings.Split(out.String(), "\n") {
		line, ok := verb.Decode([]byte(text))
		if !ok {
			continue
		}
		if last.Type == verb.TypeResult || last.Type == verb.TypeFailure {
			r.Fatalf("%s line after the last one", line.Type)
		}
		last = line
		if line.Type == verb.TypeStep && line.Step.State == verb.StepStarted {
			steps = append(steps, line.Step.Name)
		}
		if line.Type == verb.TypeStep && line.Step.State == verb.StepProgress {
			r.details = append(r.details, line.Step.Name+": "+line.Step.Detail)
		}
	}
	if last.Type == verb.TypeHello || last.Type == verb.TypePlan || last.Type == verb.TypeStep {
		last = verb.Line{} // killed
	}
	if last.Result != nil && last.Result.Facts != nil && last.Result.Facts.Identity.Request != "" {
		r.requests[last.Result.Facts.Identity.Request] = true
	}
	return last, steps
}

// apply sends the spec, and with it what the host lacks, and runs the verb.
func (r *rig) apply(spec nodespec.NodeSpec) (verb.Line, []string) {
	r.Helper()
	args := r.send(spec)
	if args == nil {
		return verb.Line{}, nil
	}
	return r.run(append([]string{"apply"}, args...)...)
}

// send uploads spec and payload and returns the flags; nil when the verb facts was killed.
func (r *rig) send(spec nodespec.NodeSpec) []string {
	r.Helper()
	line, _ := r.run("facts")
	if line.Result == nil {
		return nil
	}
	data, err := spec.Encode()
	r.must(err)
	path := nodespec.InboxSpec(sum(data))
	r.must(r.Drive().WriteFile(path, data))
	args := []string{"--spec", path}
	if lacking := lacking(spec, line.Result.Facts.Payload); len(lacking) > 0 {
		archive, err := pack(r.TempDir(), r.versions, lacking)
		r.must(err)
		path := nodespec.InboxPayload(sum(archive))
		r.must(r.Drive().WriteFile(path, archive))
		args = append(args, "--payload", path)
	}
	return args
}

func lacking(spec nodespec.NodeSpec, present map[string]string) []string {
	var sums []string
	for _, release := range spec.Releases {
		for _, file := range release.Files {
			if _, there := present[file.SHA256]; !there {
				sums = append(sums, file.SHA256)
			}
		}
	}
	slices.Sort(sums)
	return slices.Compact(sums)
}

// configure does what the operator does until the host is a node, through restarts of the host and kills of the agent.
func (r *rig) configure() (steps []string) {
	r.Helper()
	return r.configureUntil(func() bool { return false })
}

// configureUntil is configure that ends early when done says so after a verb.
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
		case verb.TypeRebooting:
			r.awaitBoot(boot)
		case verb.TypeFailure:
			r.Fatalf("apply: %s: %v", line.Failure.Reason, line.Failure)
		case verb.TypeResult:
			if !r.satisfy(&spec, *line.Result) {
				return steps
			}
		default: // killed
			r.awaitRunning()
		}
	}
	r.Fatal("the host does not become a node")
	return nil
}

// satisfy gives what the agent needs; false when it needs nothing.
func (r *rig) satisfy(spec *nodespec.NodeSpec, result verb.Result) bool {
	r.Helper()
	needs := result.Plan.Needs
	if slices.Contains(needs, nodespec.NeedCertificate) {
		spec.Identity.Certificate = r.sign(result.Facts.Identity.Request)
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

// awaitBoot waits until the machine is up again after a restart. An agent that was killed after it had said that the
// host restarts has not restarted it: the operator sees that by the boot ID, and asks again.
func (r *rig) awaitBoot(before string) {
	r.Helper()
	if r.Running() && r.BootID() == before {
		return
	}
	r.must(r.WaitFor(r.ctx, func(m *fake.Machine) bool { return m.BootID() != before && m.Running() }))
}

func (r *rig) awaitRunning() {
	r.Helper()
	r.must(r.WaitFor(r.ctx, (*fake.Machine).Running))
}

// awaitSettled waits until the services have done what they do at their start.
func (r *rig) awaitSettled() {
	r.Helper()
	r.must(r.WaitFor(r.ctx, func(m *fake.Machine) bool {
		for _, path := range []string{`C:\var\log\kubelet\kubelet.log`, `C:\var\log\containerd\containerd.log`, `C:\var\log\kube-proxy\kube-proxy.log`, serviceLog} {
			if _, err := m.Drive().Stat(path); err != nil {
				return false
			}
		}
		return r.count("ready", nodespec.ServiceAgent) > 0 && r.count(fake.KindProcess, "start "+newSpec(nil).Releases[1].Directory+`\shim.exe`) > 0
	}))
}

// remove has the agent give the host back, and takes the agent's folder away as the operator does.
func (r *rig) remove() (steps []string) {
	r.Helper()
	for range 30 {
		boot := r.BootID()
		line, done := r.run("remove")
		steps = append(steps, done...)
		switch line.Type {
		case verb.TypeRebooting:
			r.awaitBoot(boot)
		case verb.TypeFailure:
			r.Fatalf("remove: %s: %v", line.Failure.Reason, line.Failure)
		case verb.TypeResult:
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

// plan is what the agent would do now.
func (r *rig) plan(spec nodespec.NodeSpec) plan.Plan {
	r.Helper()
	line, _ := r.run(append([]string{"plan"}, r.send(spec)...)...)
	if line.Result == nil || line.Result.Plan == nil {
		r.Fatalf("no plan: %+v", line.Failure)
	}
	return *line.Result.Plan
}

// full is the spec that the host was brought to.
func (r *rig) full() nodespec.NodeSpec {
	spec := newSpec(r.versions)
	spec.Network.PodSubnet = podSubnet
	return spec
}

func (r *rig) count(kind fake.Kind, detail string) int {
	return len(r.Journal().Entries(func(e fake.Entry) bool { return e.Kind == kind && strings.Contains(e.Detail, detail) }))
}

func names(p plan.Plan) string {
	var lines []string
	for _, step := range p.Steps {
		lines = append(lines, fmt.Sprintf("%s (%s)", step.Name, step.Reason))
	}
	return strings.Join(lines, "\n")
}
