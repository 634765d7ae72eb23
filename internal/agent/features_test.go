package agent_test

import (
	"sync/atomic"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agent/timing"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// asksForFeatures counts the questions to DISM of one process: the agent's service, or a verb.
func (r *rig) asksForFeatures(service string) *atomic.Int32 {
	var asked atomic.Int32
	r.OnOperation(func(o fake.Operation) error {
		if o.Interface == "Features" && o.Method == "State" && o.Process.Service == service {
			asked.Add(1)
		}
		return nil
	})
	return &asked
}

// A session of DISM takes seconds and starts Windows' servicing.
func TestDISMIsAskedSeldom(t *testing.T) {
	t.Parallel()
	t.Run("a verb asks once for each feature", func(t *testing.T) {
		t.Parallel()
		r := joined(t)
		spec := r.full()
		args := append([]string{"plan"}, r.send(spec)...)
		asked := r.asksForFeatures("")
		r.run(args...)
		if got := int(asked.Load()); got != len(spec.Features)+len(spec.OptionalFeatures) {
			t.Errorf("%d questions for %d features", got, len(spec.Features)+len(spec.OptionalFeatures))
		}
	})
	t.Run("the service does not ask at each comparison, but asks again", func(t *testing.T) {
		t.Parallel()
		r := node(t)
		asked := r.asksForFeatures(nodespec.ServiceAgent)
		for range 5 {
			r.pass(timing.DriftCheck)
		}
		if got := asked.Load(); got > 1 {
			t.Errorf("%d questions within 5 minutes", got)
		}
		before := asked.Load()
		r.pass(timing.FeatureCheck)
		r.pass(timing.DriftPoll)
		if asked.Load() == before {
			t.Error("it does not ask again")
		}
	})
}
