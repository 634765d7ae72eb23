package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
)

// Sizes of fleets that have budgets of their own.
const (
	smallFleetHosts = 100
	largeFleetHosts = 1000
	// upgradedAtOnce is how many nodes of the small fleet an upgrade may disturb at a time.
	upgradedAtOnce = 10
)

// fleetRun is one fleet in a process of its own: what it leaves behind, the next one does not have.
type fleetRun struct {
	hosts, sizePercent, maxUnavailable int
	occasions                          []fleet.Occasion
}

// fleetRuns are one host with a payload of the real size, one host that is upgraded, and fleets of each size: the
// smallest is upgraded, and with the largest everything else happens.
func fleetRuns(sizes []int) []fleetRun {
	runs := []fleetRun{
		{hosts: 1, sizePercent: labpayload.RealSizePercent, maxUnavailable: 1},
		{hosts: 1, sizePercent: 100, maxUnavailable: 1, occasions: []fleet.Occasion{fleet.SamePrograms, fleet.Upgrade}},
	}
	sizes = slices.Sorted(slices.Values(sizes))
	for i, hosts := range sizes {
		run := fleetRun{hosts: hosts, sizePercent: 100, maxUnavailable: upgradedAtOnce}
		if i == len(sizes)-1 {
			run.occasions = []fleet.Occasion{fleet.Idle, fleet.Restart, fleet.Setting, fleet.Rotation}
		}
		if i == 0 {
			run.occasions = append(run.occasions, fleet.Upgrade)
		}
		runs = append(runs, run)
	}
	return runs
}

func (f fleetRun) arguments(o *options, file string) []string {
	occasions := make([]string, len(f.occasions))
	for i, each := range f.occasions {
		occasions[i] = string(each)
	}
	return []string{"fleet", fmt.Sprintf("--hosts=%d", f.hosts), fmt.Sprintf("--payload-percent=%d", f.sizePercent),
		fmt.Sprintf("--max-unavailable=%d", f.maxUnavailable), "--occasions=" + strings.Join(occasions, ","),
		"--agent=" + o.agent, "--limit=" + o.fleetLimit.String(), "--idle=" + o.fleetIdle.String(), "--json=" + file}
}

// measureFleets runs this program once for each fleet.
func (o *options) measureFleets(ctx context.Context, dir string) ([]fleet.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	var results []fleet.Result
	for i, run := range fleetRuns(o.fleets) {
		file := filepath.Join(dir, fmt.Sprintf("fleet-%d.json", i))
		command := exec.CommandContext(ctx, self, run.arguments(o, file)...)
		command.Stdout, command.Stderr = o.output, os.Stderr
		command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
		if err := command.Run(); err != nil {
			return results, fmt.Errorf("measure a fleet of %d hosts: %w", run.hosts, err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return results, fmt.Errorf("measure a fleet of %d hosts: %w", run.hosts, err)
		}
		var result fleet.Result
		if err := json.Unmarshal(data, &result); err != nil {
			return results, fmt.Errorf("read what was measured of a fleet of %d hosts: %w", run.hosts, err)
		}
		results = append(results, result)
	}
	return results, nil
}

// phaseWith finds an occasion in a fleet of that many hosts, with programs of that size.
func (r Result) phaseWith(hosts, sizePercent int, occasion fleet.Occasion) (phase fleet.Phase, known bool) {
	for _, each := range r.Fleets {
		if each.Hosts != hosts || each.SizePercent != sizePercent {
			continue
		}
		if phase, known := each.Phase(occasion); known {
			return phase, true
		}
	}
	return fleet.Phase{}, false
}

// phase finds an occasion in a fleet with programs of the usual size.
func (r Result) phase(hosts int, occasion fleet.Occasion) (fleet.Phase, bool) {
	return r.phaseWith(hosts, 100, occasion)
}

// peakMemory is the most memory that the operator ever had, in any fleet.
func (r Result) peakMemory() (bytes int64, known bool) {
	for _, each := range r.Fleets {
		for _, phase := range each.Phases {
			if phase.Memory != nil {
				bytes, known = max(bytes, phase.Memory.Peak), true
			}
		}
	}
	return bytes, known
}
