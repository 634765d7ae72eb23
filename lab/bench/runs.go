package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
)

const (
	smallFleet, mediumFleet, largeFleet = 100, 300, 1000

	// upgradedAtOnce is the number of nodes that an upgrade may disrupt at a time.
	upgradedAtOnce = 10
	// distant is the round-trip time to the host with a budget for the added time.
	distant = 50 * time.Millisecond
	// realSize is the size of the shipped programs; usualSize is the size of the simulated programs in the lab,
	// in percent.
	realSize, usualSize = labpayload.RealSizePercent, 100
)

// run is one fleet. Each fleet is measured in a separate process, so that none inherits memory.
type run struct {
	hosts, sizePercent int
	roundTrip          time.Duration
	scenarios          []fleet.Scenario
}

// fleetRuns returns the fleets to measure. The small fleet is upgraded; all other scenarios are measured with the
// large fleet.
func fleetRuns() []run {
	return []run{
		{hosts: 1, sizePercent: realSize},
		{hosts: 1, sizePercent: realSize, roundTrip: distant},
		{hosts: 1, sizePercent: usualSize, scenarios: []fleet.Scenario{fleet.Idle, fleet.Restart, fleet.SamePrograms, fleet.Upgrade}},
		{hosts: 10, sizePercent: usualSize, scenarios: []fleet.Scenario{fleet.Idle, fleet.Restart}},
		{hosts: 50, sizePercent: usualSize, scenarios: []fleet.Scenario{fleet.Idle, fleet.Restart, fleet.SamePrograms}},
		{hosts: smallFleet, sizePercent: usualSize, scenarios: []fleet.Scenario{fleet.Upgrade}},
		{hosts: mediumFleet, sizePercent: usualSize},
		{hosts: largeFleet, sizePercent: usualSize, scenarios: []fleet.Scenario{fleet.Idle, fleet.Restart, fleet.Setting, fleet.Rotation}},
	}
}

// fleetSizes returns the numbers of hosts.
func fleetSizes() (hosts []int) {
	for _, each := range fleetRuns() {
		hosts = append(hosts, each.hosts)
	}
	return slices.Compact(hosts)
}

// measureFleet runs this program once for the fleet. If the program fails, the result contains the scenarios before
// the failure.
func (r run) measureFleet(ctx context.Context, o *options) (result fleet.Result, err error) {
	self, err := os.Executable()
	if err != nil {
		return result, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "wmco-bench-")
	if err != nil {
		return result, fmt.Errorf("make a directory for the results: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "fleet.json")
	command := exec.CommandContext(ctx, self, "fleet", fmt.Sprintf("--hosts=%d", r.hosts), fmt.Sprintf("--payload-percent=%d", r.sizePercent),
		fmt.Sprintf("--round-trip=%s", r.roundTrip), fmt.Sprintf("--max-unavailable=%d", upgradedAtOnce), "--scenarios="+strings.Join(scenarioNames(r.scenarios), ","),
		"--operator="+o.operator, "--agent="+o.agent, fmt.Sprintf("--limit=%s", o.timeout), fmt.Sprintf("--idle=%s", o.idleDuration), "--json="+file)
	command.Stdout, command.Stderr = o.output, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	ended := command.Run()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &result)
	}
	if err := errors.Join(ended, err); err != nil {
		return result, fmt.Errorf("measure a fleet of %d hosts: %w", r.hosts, err)
	}
	return result, nil
}

func scenarioNames(scenarios []fleet.Scenario) []string {
	all := make([]string, len(scenarios))
	for i, each := range scenarios {
		all[i] = string(each)
	}
	return all
}
