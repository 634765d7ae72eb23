package execute_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// hungRuntime lists pods only if lists is set, and stops none: calls block until canceled.
type hungRuntime struct {
	pods     int
	lists    bool
	clock    *clocktesting.FakeClock
	endCalls int
}

func (r *hungRuntime) blockUntilDone(ctx context.Context) error {
	r.clock.Step(timeouts.PodTimeout)
	<-ctx.Done()
	return errors.New("the pipe was closed")
}

func (r *hungRuntime) List(ctx context.Context, _ string) (pods []host.Sandbox, err error) {
	if !r.lists {
		return nil, r.blockUntilDone(ctx)
	}
	for i := range r.pods {
		pods = append(pods, host.Sandbox{ID: fmt.Sprint(i), Namespace: "monitoring", Name: fmt.Sprintf("agent-%d", i)})
	}
	return pods, nil
}

func (r *hungRuntime) End(ctx context.Context, _, _ string) error {
	r.endCalls++
	return r.blockUntilDone(ctx)
}

//
func TestEndPods_WaitsLimitedTimeForHungRuntime(t *testing.T) {
	endPods := func(t *testing.T, runtime *hungRuntime) (advice string, elapsed time.Duration) {
		t.Helper()
		start := time.Unix(1<<30, 0)
		runtime.clock = clocktesting.NewFakeClock(start)
		e := &execute.Executor{Dependencies: execute.Dependencies{Host: host.Host{Sandboxes: runtime}, Clock: runtime.clock,
			Answer: state.NewWriter(io.Discard, runtime.clock)}}
		step := plan.Step{Operation: plan.EndPods{Service: "containerd", Endpoint: "npipe://./pipe/containerd-containerd"}}
		if err := e.RunStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		return e.TakeWarning(), runtime.clock.Since(start)
	}
	t.Run("one that does not list its pods is asked once", func(t *testing.T) {
		advice, elapsed := endPods(t, &hungRuntime{})
		if elapsed != timeouts.PodTimeout || !strings.Contains(advice, "containerd does not list its pods") {
			t.Errorf("after %s: %s", elapsed, advice)
		}
	})
	t.Run("pods that do not end are counted, and the first is named", func(t *testing.T) {
		runtime := &hungRuntime{lists: true, pods: 2}
		advice, elapsed := endPods(t, runtime)
		if elapsed != 2*timeouts.PodTimeout || !strings.Contains(advice, "2 of 2 pods did not stop (first: monitoring/agent-0") {
			t.Errorf("after %s: %s", elapsed, advice)
		}
	})
	t.Run("a host full of such pods is not waited for longer than for ten", func(t *testing.T) {
		runtime := &hungRuntime{lists: true, pods: 200}
		advice, elapsed := endPods(t, runtime)
		if elapsed != timeouts.AllPodsTimeout || runtime.endCalls != 10 || !strings.Contains(advice, "200 of 200") {
			t.Errorf("after %s and %d requests: %s", elapsed, runtime.endCalls, advice)
		}
	})
}
