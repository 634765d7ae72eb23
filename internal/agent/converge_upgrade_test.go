package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func agentDirectory(program []byte) string {
	return strings.TrimSuffix(nodespec.AgentPath(hexDigest(program)), `\`+nodespec.AgentProgram)
}

// upgradedSpec returns the spec of an operator with another agent.
func (r *rig) upgradedSpec() nodespec.NodeSpec {
	r.program = programContent("wicd.exe", "v2")
	spec := r.fullSpec()
	last := &spec.Services[len(spec.Services)-1]
	last.CommandLine = nodespec.AgentPath(hexDigest(r.program)) + " service"
	return spec
}

// A new agent is installed beside the running agent and then replaces it. R-086
func TestUpgrade_ReplacesRunningAgent(t *testing.T) {
	t.Parallel()
	t.Run("the service is re-pointed and restarted, and nothing else", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		before, _ := r.Service(nodespec.ServiceAgent)
		spec := r.upgradedSpec()
		steps := r.mustApply(spec)
		want := []string{
			"StopService " + nodespec.ServiceAgent, "ConfigureService " + nodespec.ServiceAgent, "StartService " + nodespec.ServiceAgent,
		}
		if !slices.Equal(steps, want) {
			t.Errorf("got %q", steps)
		}
		after, _ := r.Service(nodespec.ServiceAgent)
		path := nodespec.AgentPath(hexDigest(r.program))
		if after.State != host.ServiceRunning || after.PID == before.PID || !strings.HasPrefix(after.RunningCommandLine, path) {
			t.Errorf("got %+v", after)
		}
		if !slices.Equal(after.RestartDelays, before.RestartDelays) || len(after.RestartDelays) == 0 {
			t.Errorf("recovery %v", after.RestartDelays)
		}
		if _, err := r.Drive().Stat(agentDirectory(agentProgram)); err == nil {
			t.Error("the former agent is still there")
		}
		if steps := r.mustApply(spec); len(steps) != 0 {
			t.Errorf("again: %q", steps)
		}
	})
	t.Run("the running program is never written", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		if err := r.Drive().WriteFile(nodespec.AgentPath(hexDigest(agentProgram)), []byte("MZ wicd.exe v2")); err == nil {
			t.Fatal("Windows lets nobody write a program that runs")
		}
		r.mustApply(r.upgradedSpec())
	})
	t.Run("the former folder stays while a process runs from it, and goes with the next apply", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		release, err := r.HoldFile(nodespec.AgentPath(hexDigest(agentProgram)))
		r.must(err)
		spec := r.upgradedSpec()
		r.mustApply(spec)
		if _, err := r.Drive().Stat(nodespec.AgentPath(hexDigest(agentProgram))); err != nil {
			t.Fatal("it was taken away while it is held")
		}
		release()
		r.mustApply(spec)
		if _, err := r.Drive().Stat(agentDirectory(agentProgram)); err == nil {
			t.Error("the former agent is still there")
		}
	})
	t.Run("the new agent repairs drift", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.mustApply(r.upgradedSpec())
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.countEntries("ready", nodespec.ServiceAgent) > 1 }))
		r.advanceTime(timeouts.DriftPollInterval)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.advanceTime(timeouts.DriftPollInterval)
		if service, _ := r.Service("kube-proxy"); service.State != host.ServiceRunning {
			t.Error("kube-proxy does not run")
		}
	})
	t.Run("killed anywhere, the next apply goes on", func(t *testing.T) {
		t.Parallel()
		reference := newConfiguredRig(t)
		counting := &killer{}
		counting.registerHook(reference)
		reference.mustApply(reference.upgradedSpec())
		for n := range killPoints(counting.seen) {
			r := newConfiguredRig(t)
			k := &killer{n: n}
			k.registerHook(r)
			spec := r.upgradedSpec()
			r.apply(spec)
			r.mustApply(spec)
			after, _ := r.Service(nodespec.ServiceAgent)
			if after.State != host.ServiceRunning || !strings.HasPrefix(after.RunningCommandLine, nodespec.AgentPath(hexDigest(r.program))) {
				t.Errorf("killed before %s: %+v", k.at, after)
			}
			if _, err := r.Drive().Stat(agentDirectory(agentProgram)); err == nil {
				t.Errorf("killed before %s: the former agent is still there", k.at)
			}
		}
	})
	t.Run("the former agent's service does not end itself for a spec that was left half applied", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		data, err := r.upgradedSpec().Encode()
		r.must(err)
		r.uploadAgent()
		r.must(r.Drive().WriteFile(nodespec.SpecPath, data))
		before, _ := r.Service(nodespec.ServiceAgent)
		r.advanceTime(timeouts.DriftCheckInterval)
		after, _ := r.Service(nodespec.ServiceAgent)
		if after.State != host.ServiceRunning || after.PID != before.PID || len(r.eventsByID(report.EventLeft)) != 1 {
			t.Errorf("%+v, events %+v", after, r.Events())
		}
	})
}
