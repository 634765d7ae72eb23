package agent_test

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
)

// Other programs, such as containerd ending a pod, delete objects of the Host Networking Service at any time,
// even between listing and opening.
func TestHNS_VanishedObjectsCauseNoFailure(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	const pod = "pod-that-ends"
	t.Run("facts are gathered without a pod that ends", func(t *testing.T) {
		_, err := r.Host().Networks.CreateEndpoint(r.ctx, r.fullSpec().Network.HNSNetwork, pod, "")
		r.must(err)
		vanished := r.VanishHNS(pod, false)
		if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 || !vanished() {
			t.Errorf("steps %s, vanished: %t", formatSteps(p), vanished())
		}
	})
	t.Run("the check passes whose endpoint another program deletes first", func(t *testing.T) {
		vanished := r.VanishHNS("wmco-check", true)
		line, _ := r.run("verify")
		for _, check := range line.Result.Checks {
			if strings.Contains(check.Name, "Endpoint") && !check.Passed {
				t.Errorf("%s: %s", check.Name, check.Message)
			}
		}
		if !vanished() {
			t.Error("no endpoint has vanished")
		}
	})
	t.Run("an endpoint that vanishes before it is attached is made again", func(t *testing.T) {
		r.must(r.Host().Networks.DeleteEndpoint(r.ctx, host.SourceVIPEndpoint))
		vanished := r.VanishHNS(host.SourceVIPEndpoint, true)
		line, _ := r.apply(r.fullSpec())
		if line.Type != agentapi.TypeFailure || !vanished() {
			t.Errorf("got %+v, vanished: %t", line, vanished())
		}
		r.mustApply(r.fullSpec())
		if check := r.runPlan(r.fullSpec()); len(check.Steps) != 0 {
			t.Errorf("there is more to do: %s", formatSteps(check))
		}
	})
	t.Run("a removal goes on without a network that vanishes", func(t *testing.T) {
		r.awaitServices()
		vanished := r.VanishHNS(r.fullSpec().Network.HNSNetwork, true)
		r.removeNode()
		if !vanished() {
			t.Error("no network has vanished")
		}
		compareSnapshots(t, r.before, r.Snapshot())
	})
}
