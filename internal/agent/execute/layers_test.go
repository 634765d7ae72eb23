package execute_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// layeredDrive has a directory of layers; the deletion of a layer succeeds, fails or hangs.
type layeredDrive struct {
	host.Files // other operations are not called

	layers   int
	hangs    func(layer int) bool
	fails    func(layer int) bool
	unlisted error
	clock    *clocktesting.FakeClock

	destroyCalls []string
	removed      []string
	ended        context.CancelFunc // cancels the command during the deletion of a layer; may be nil
}

func (d *layeredDrive) ReadDir(_ context.Context, path string) (found []host.FileInfo, err error) {
	if path != nodespec.LayersDirectory {
		return nil, fmt.Errorf("%s: %w", path, host.ErrNotExist)
	}
	for i := range d.layers {
		name := fmt.Sprint(i)
		found = append(found, host.FileInfo{Name: name, Path: path + `\` + name})
	}
	return found, d.unlisted
}

func (d *layeredDrive) Remove(_ context.Context, path string) error {
	d.removed = append(d.removed, path)
	return nil
}

func (d *layeredDrive) Destroy(ctx context.Context, path string) error {
	layer := len(d.destroyCalls)
	d.destroyCalls = append(d.destroyCalls, path)
	if d.ended != nil {
		d.ended()
	}
	if d.hangs != nil && d.hangs(layer) {
		d.clock.Step(timeouts.LayerTimeout)
		<-ctx.Done() // internal/host/windows does not wait longer for its call
		return fmt.Errorf("destroy layer %s: %w", path, ctx.Err())
	}
	if d.fails != nil && d.fails(layer) {
		return fmt.Errorf("destroy layer %s: %w", path, host.ErrInUse)
	}
	return nil
}

//
func TestRemovePath_WaitsLimitedTimeForLayers(t *testing.T) {
	root := nodespec.LayersDirectory[:strings.LastIndex(nodespec.LayersDirectory, `\`)]
	always := func(int) bool { return true }
	remove := func(t *testing.T, ctx context.Context, drive *layeredDrive) (advice string, elapsed time.Duration) {
		t.Helper()
		start := time.Unix(1<<30, 0)
		drive.clock = clocktesting.NewFakeClock(start)
		e := &execute.Executor{Dependencies: execute.Dependencies{Host: host.Host{Files: drive, Layers: drive}, Clock: drive.clock,
			Answer: state.NewWriter(io.Discard, drive.clock)}}
		if err := e.RunStep(ctx, plan.Step{Operation: plan.RemovePath{Path: root}}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(drive.removed, []string{root}) {
			t.Errorf("removed was %q: the folder goes whatever becomes of its layers", drive.removed)
		}
		return e.TakeWarning(), drive.clock.Since(start)
	}
	t.Run("a thousand layers go, one after the other, and nothing is said", func(t *testing.T) {
		drive := &layeredDrive{layers: 1000}
		if advice, _ := remove(t, t.Context(), drive); advice != "" || len(drive.destroyCalls) != 1000 ||
			drive.destroyCalls[999] != nodespec.LayersDirectory+`\999` {
			t.Errorf("after %d layers: %s", len(drive.destroyCalls), advice)
		}
	})
	t.Run("one that Windows does not let go of is named with its reason, and the next ones go", func(t *testing.T) {
		drive := &layeredDrive{layers: 3, fails: func(layer int) bool { return layer == 1 }}
		advice, _ := remove(t, t.Context(), drive)
		if len(drive.destroyCalls) != 3 || !strings.Contains(advice, "1 of 3 container layers; first error: destroy layer "+nodespec.LayersDirectory+`\1`) ||
			!strings.Contains(advice, host.ErrInUse.Error()) {
			t.Errorf("after %d layers: %s", len(drive.destroyCalls), advice)
		}
	})
	t.Run("one that hangs is given up after its limit, and the next ones go", func(t *testing.T) {
		drive := &layeredDrive{layers: 3, hangs: func(layer int) bool { return layer == 0 }}
		advice, elapsed := remove(t, t.Context(), drive)
		if elapsed != timeouts.LayerTimeout || len(drive.destroyCalls) != 3 || !strings.Contains(advice, "1 of 3") ||
			!strings.Contains(advice, "deleting layer 0 took longer than 1m0s") {
			t.Errorf("after %s and %d layers: %s", elapsed, len(drive.destroyCalls), advice)
		}
	})
	t.Run("a thousand that hang are not waited for longer than for ten, and all are counted", func(t *testing.T) {
		drive := &layeredDrive{layers: 1000, hangs: always}
		advice, elapsed := remove(t, t.Context(), drive)
		if elapsed != timeouts.AllLayersTimeout || len(drive.destroyCalls) != 10 || !strings.Contains(advice, "1000 of 1000") {
			t.Errorf("after %s and %d layers: %s", elapsed, len(drive.destroyCalls), advice)
		}
	})
	t.Run("where they cannot be listed, the reason is given and the folder goes", func(t *testing.T) {
		drive := &layeredDrive{unlisted: errors.New("the drive does not answer")}
		if advice, _ := remove(t, t.Context(), drive); !strings.Contains(advice, "the drive does not answer") {
			t.Errorf("the advice is %q", advice)
		}
	})
	t.Run("a verb that is interrupted begins with no other layer", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		drive := &layeredDrive{layers: 1000, ended: cancel}
		if remove(t, ctx, drive); len(drive.destroyCalls) != 1 {
			t.Errorf("%d layers were begun", len(drive.destroyCalls))
		}
	})
}
