package containerd

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// The agent's calls, answered by the real containerd. R-064
func TestContainerd_EndsPods(t *testing.T) {
	c := start(t)
	t.Run("a pod is listed with its names, and ended with its containers, its shim and its mounts", func(t *testing.T) {
		id := c.run(t, "web")
		if len(c.podProcesses(t, id)) == 0 || len(c.listMounts(t)) == 0 {
			t.Fatalf("it does not run: %q, %q", c.podProcesses(t, id), c.listMounts(t))
		}
		pods, err := c.List(t.Context(), "")
		if want := []host.Sandbox{{ID: id, Namespace: "shop", Name: "web"}}; !slices.Equal(pods, want) || err != nil {
			t.Errorf("%v, %v", pods, err)
		}
		requireNoError(t, c.End(t.Context(), "", id))
		if pods, alive, mounted := c.podNames(t), c.podProcesses(t, id), c.listMounts(t); len(pods)+len(alive)+len(mounted) > 0 {
			t.Errorf("left: pods %q, processes %q, mounts %q", pods, alive, mounted)
		}
	})
	t.Run("a pod that is gone meanwhile has ended", func(t *testing.T) {
		id := c.run(t, "gone")
		requireNoError(t, c.End(t.Context(), "", id))
		requireNoError(t, c.End(t.Context(), "", id))
	})
	t.Run("a pod that does not stop keeps its place, holds up no other, and is named with containerd's reason", func(t *testing.T) {
		c.run(t, "first")
		refused := c.run(t, "stuck")
		c.run(t, "last")
		c.refuseRemoval(t, "stuck")
		advice := c.endPods(t)
		if pods := c.podNames(t); !slices.Equal(pods, []string{"shop/stuck"}) {
			t.Errorf("left: %q", pods)
		}
		for _, want := range []string{"1 of 3 pods did not stop (first: shop/stuck: stop the pod", "the network does not let go"} {
			if !strings.Contains(advice, want) {
				t.Errorf("%q is not in %s", want, advice)
			}
		}
		if alive := c.podProcesses(t, refused); len(alive) != 0 {
			t.Errorf("its containers were not ended: %q", alive)
		}
		c.refuseRemoval(t)
		if advice := c.endPods(t); advice != "" || len(c.podNames(t)) > 0 {
			t.Errorf("left: %q; %s", c.podNames(t), advice)
		}
	})
	t.Run("a pod stays as long as the configuration of its network is away, so pods end before files go", func(t *testing.T) {
		c.run(t, "web")
		requireNoError(t, os.Remove(c.networkFile()))
		c.waitForNetwork(t, false)
		if advice := c.endPods(t); !strings.Contains(advice, "cni") || len(c.podNames(t)) != 1 {
			t.Errorf("left: %q; %s", c.podNames(t), advice)
		}
		c.configureNetwork(t)
		c.waitForNetwork(t, true)
		if advice := c.endPods(t); advice != "" || len(c.podNames(t)) > 0 {
			t.Errorf("left: %q; %s", c.podNames(t), advice)
		}
	})
	t.Run("a containerd that is silent is given up with the context, and ends the pod when it is back", func(t *testing.T) {
		id := c.run(t, "silent")
		c.stop(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, listed := c.List(ctx, "")
		ended := c.End(ctx, "", id)
		requireNoError(t, c.process.Signal(syscall.SIGCONT))
		if listed == nil || ended == nil {
			t.Errorf("list: %v, end: %v", listed, ended)
		}
		requireNoError(t, c.End(t.Context(), "", id))
		if pods := c.podNames(t); len(pods) > 0 {
			t.Errorf("left: %q", pods)
		}
	})
}

// refuseRemoval makes the plugin refuse to remove the networks of these pods.
func (c *containerd) refuseRemoval(t *testing.T, pods ...string) {
	t.Helper()
	requireNoError(t, os.WriteFile(filepath.Join(c.dir, "refused"), []byte(strings.Join(pods, "\n")), 0o600))
}

// endPods runs the removal step, and returns its advice.
func (c *containerd) endPods(t *testing.T) (advice string) {
	t.Helper()
	e := &execute.Executor{Dependencies: execute.Dependencies{Host: host.Host{Sandboxes: c}, Clock: clock.RealClock{},
		Answer: state.NewWriter(io.Discard, clock.RealClock{})}}
	step := plan.Step{Operation: plan.EndPods{Service: "containerd", Endpoint: "the socket"}}
	if err := e.RunStep(t.Context(), step); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return e.TakeWarning()
}
