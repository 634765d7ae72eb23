// Package robustness has random administrators and random faults work on the operator, and finds what must not be. See
// package lab/robustness.
package robustness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
	"github.com/windows-machine-config/wmco/lab/robustness"
)

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }

// What `make robustness` sets.
const (
	seedsVariable   = "ROBUSTNESS_SEEDS"   // seeds, separated by spaces
	forVariable     = "ROBUSTNESS_FOR"     // how long new seeds are tried
	actionsVariable = "ROBUSTNESS_ACTIONS" // a file with a list of actions, in place of seeds
)

// resultsDirectory is where a failed run leaves its actions and the operator's log.
const resultsDirectory = "../../build/robustness"

// Sizes of runs. The short one is part of all tests.
var (
	small = robustness.Shape{Hosts: []string{"instance-1", "instance-2", "instance-3"}, Listed: 2, Named: []string{"instance-2"}, Releases: 3, Actions: 8}
	large = robustness.Shape{Hosts: []string{"instance-1", "instance-2", "instance-3", "instance-4", "master-0"}, Listed: 3,
		Named: []string{"instance-2", "instance-4"}, Impostor: "master-0", Releases: 3, Actions: 25}
	machines = robustness.Shape{Hosts: []string{"instance-1", "instance-2"}, Listed: 1, Machines: 1, Releases: 3, Actions: 20}
)

// TestRandomAdministratorsAndFaults plays a few seeds that are always the same.
func TestRandomAdministratorsAndFaults(t *testing.T) {
	if os.Getenv(forVariable)+os.Getenv(seedsVariable)+os.Getenv(actionsVariable) != "" {
		t.Log("TestSearch runs instead")
		return
	}
	t.Parallel()
	options := newOptions(t, small)
	for _, seed := range []uint64{1, 2} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			play(t, options, seed, robustness.Generate(seed, small))
		})
	}
}

// TestWhatAdministratorsDoEveryDay plays a list without faults. Seeded defects show that the rules bite.
func TestWhatAdministratorsDoEveryDay(t *testing.T) {
	t.Parallel()
	play(t, newOptions(t, small), 0, read(t, "testdata/everyday.actions"))
}

func read(t *testing.T, path string) []robustness.Action {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	actions, err := robustness.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return actions
}

// TestSearch is `make robustness`: given seeds, given actions, or new seeds for a time. The actions of a run that fails
// are shrunk.
func TestSearch(t *testing.T) {
	options := newOptions(t, large)
	switch {
	case os.Getenv(actionsVariable) != "":
		play(t, options, 0, read(t, os.Getenv(actionsVariable)))
	case os.Getenv(seedsVariable) != "":
		for _, text := range strings.Fields(os.Getenv(seedsVariable)) {
			seed, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			search(t, options, seed)
		}
	case os.Getenv(forVariable) != "":
		duration, err := time.ParseDuration(os.Getenv(forVariable))
		if err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(duration); time.Now().Before(until); {
			search(t, options, uint64(rand.Uint32()))
		}
	}
}

// search plays a seed, of which each third has Machines, and shrinks its actions when it fails.
func search(t *testing.T, options robustness.Options, seed uint64) {
	if seed%3 == 0 {
		options.Shape = machines
	}
	t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
		actions := robustness.Generate(seed, options.Shape)
		if play(t, options, seed, actions) {
			return
		}
		const attempts = 12
		left := robustness.Shrink(actions, attempts, func(fewer []robustness.Action) bool {
			report, err := robustness.Run(t.Context(), options, fewer)
			t.Logf("with %d actions: %d violations, error %v", len(fewer), len(report.Violations), err)
			return err == nil && len(report.Violations) > 0
		})
		if err := save(seed, "-shrunk", robustness.Report{Actions: left}); err != nil {
			t.Error(err)
		}
		t.Logf("these %d actions make it fail:\n%s", len(left), robustness.Lines(left))
	})
}

// play plays actions, and reports whether nothing was found.
func play(t *testing.T, options robustness.Options, seed uint64, actions []robustness.Action) bool {
	t.Helper()
	report, err := robustness.Run(t.Context(), options, actions)
	if err != nil {
		t.Errorf("seed %d: the lab failed: %v", seed, err)
		return errors.Is(err, context.Canceled)
	}
	if report.Changes < 20 || report.Requests < 100 {
		t.Errorf("seed %d: only %d changes and %d requests were judged", seed, report.Changes, report.Requests)
	}
	t.Logf("seed %d: %d actions in %s; settled after %s; judged %d changes, %d requests, %d restarts", seed, len(actions),
		robustness.Length(actions), report.Settled.Round(time.Millisecond), report.Changes, report.Requests, report.Restarts)
	if len(report.Violations) == 0 {
		return true
	}
	t.Errorf("seed %d:\n%s\nThe operator's log is in build/robustness. Again: make robustness ACTIONS=build/robustness/seed-%d.actions\n%s", seed,
		report, seed, robustness.Lines(actions))
	if err := save(seed, "", report); err != nil {
		t.Error(err)
	}
	return false
}

// save writes what a failed run leaves.
func save(seed uint64, which string, report robustness.Report) error {
	if err := os.MkdirAll(resultsDirectory, 0o750); err != nil {
		return err
	}
	write := func(name, text string) error {
		if text == "" {
			return nil
		}
		return os.WriteFile(filepath.Join(resultsDirectory, fmt.Sprintf("seed-%d%s%s", seed, which, name)), []byte(text), 0o600)
	}
	return errors.Join(write(".actions", robustness.Lines(report.Actions)), write(".log", report.Log), write(".violations", report.String()))
}

// newOptions makes the releases.
func newOptions(t *testing.T, shape robustness.Shape) robustness.Options {
	t.Helper()
	options := robustness.Options{Shape: shape, Limit: rigtest.Patience, Quiet: 4 * time.Second, Progress: t.Logf}
	var earlier []*payload.Payload
	dir := t.TempDir()
	for i := range shape.Releases {
		release := rig.Release{Version: fmt.Sprintf("12.0.%d", i), PayloadDirectory: filepath.Join(dir, fmt.Sprint(i))}
		p, err := labpayload.Generate(release.PayloadDirectory, "", release.Version, labpayload.Options{
			SizePercent: 10, AgentBytes: 128 << 10, Earlier: earlier,
			Versions: map[string]string{"kubelet": fmt.Sprintf("v1.36.%d", 3+i), payload.ComponentAgent: release.Version},
		})
		if err != nil {
			t.Fatal(err)
		}
		earlier = append(earlier, p)
		options.Releases = append(options.Releases, release)
	}
	return options
}
