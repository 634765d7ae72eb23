package agent_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// countFeatureQueries counts the DISM queries of one process: the agent's service, or a command.
func (r *rig) countFeatureQueries(service string) *atomic.Int32 {
	var queries atomic.Int32
	r.OnOperation(func(o fake.Operation) error {
		if o.Interface == "Features" && o.Method == "State" && o.Process.Service == service {
			queries.Add(1)
		}
		return nil
	})
	return &queries
}

// A DISM session takes seconds and starts Windows servicing.
func TestDISM_QueriedSeldom(t *testing.T) {
	t.Parallel()
	t.Run("a verb asks once for each feature", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		spec := r.fullSpec()
		args := append([]string{"plan"}, r.sendSpec(spec)...)
		queries := r.countFeatureQueries("")
		r.run(args...)
		if got := int(queries.Load()); got != len(spec.Features)+len(spec.OptionalFeatures) {
			t.Errorf("%d questions for %d features", got, len(spec.Features)+len(spec.OptionalFeatures))
		}
	})
	t.Run("the service does not ask at each comparison, but asks again", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		queries := r.countFeatureQueries(nodespec.ServiceAgent)
		for range 5 {
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if got := queries.Load(); got > 1 {
			t.Errorf("%d questions within 5 minutes", got)
		}
		before := queries.Load()
		r.advanceTime(timeouts.FeatureCacheTTL)
		r.advanceTime(timeouts.DriftPollInterval)
		if queries.Load() == before {
			t.Error("it does not ask again")
		}
	})
}

// A command holds the lock of the host until it ends: waiting forever for DISM would block all other commands.
func TestDISM_CommandEndsIfDISMHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	restore := r.HangDISM()
	r.Cleanup(restore)
	r.OnOperation(func(o fake.Operation) error {
		if o.Interface == "Features" && o.Method == "Enable" {
			go r.stepping.passWhileHanging(r.ctx)
		}
		return nil
	})
	spec := r.fullSpec()
	line, _ := r.runStepping(append([]string{"apply"}, r.sendSpec(spec)...)...)
	if line.Type != agentapi.TypeFailure {
		t.Fatalf("the answer is %s", line.Type)
	}
	if f := line.Failure; f.Reason != agentapi.ReasonStepFailed || !strings.HasPrefix(f.Step, "EnableFeature") ||
		!strings.Contains(f.Message, "took longer than 30m0s, and has not stopped within 10m0s. ") ||
		!strings.Contains(f.Message, "dism.log") || !strings.Contains(f.Message, "restart the host") {
		t.Errorf("the operator learns %+v", f)
	}
	if _, err := r.Drive().Stat(nodespec.LockPath); !errors.Is(err, host.ErrNotExist) {
		t.Errorf("the lock is left: %v", err)
	}
	restore()
	r.clock = clock.RealClock{}
	if steps := r.configureHost(); !slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(step, "EnableFeature") }) {
		t.Errorf("the next attempts did %q", steps)
	}
}
