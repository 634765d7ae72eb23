// Package robustness lets random administrators and random faults act on the operator, and detects violations of
// its rules. See package lab/robustness.
package robustness

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/robustness"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

var releases = &releaseFiles{}

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, releases.deleteReleases)) }

// Variables set by `make robustness`.
const (
	seedsVariable   = "ROBUSTNESS_SEEDS"   // seeds, separated by spaces
	forVariable     = "ROBUSTNESS_FOR"     // time limit for new seeds
	actionsVariable = "ROBUSTNESS_ACTIONS" // a file with a script, instead of seeds
)

// resultsDirectory is the directory for the script and the operator's log of a failed run.
const resultsDirectory = "../../build/robustness"

// Sizes of runs. The small size is part of all tests.
var (
	small = robustness.Shape{Hosts: []string{"instance-1", "instance-2", "instance-3"}, Listed: 2, Named: []string{"instance-2"}, Releases: 3, Actions: 8}
	large = robustness.Shape{Hosts: []string{"instance-1", "instance-2", "instance-3", "instance-4", "master-0"}, Listed: 3,
		Named: []string{"instance-2", "instance-4"}, Impostor: "master-0", Releases: 3, Actions: 25}
	machines = robustness.Shape{Hosts: []string{"instance-1", "instance-2"}, Listed: 1, Machines: 1, Releases: 3, Actions: 20}
)

// isRunRequested reports whether `make robustness` has set seeds, a script or a time limit.
func isRunRequested() bool {
	return os.Getenv(forVariable)+os.Getenv(seedsVariable)+os.Getenv(actionsVariable) != ""
}

// TestRobustness_RulesHoldForRandomActionsAndFaults plays a few constant seeds.
func TestRobustness_RulesHoldForRandomActionsAndFaults(t *testing.T) {
	if isRunRequested() {
		t.Log("TestSearch runs instead")
		return
	}
	t.Parallel()
	for _, seed := range []uint64{1, 2} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			run{fmt.Sprintf("small-seed-%d", seed), robustness.Generate(seed, small)}.playScript(t)
		})
	}
}

// TestRobustness_RulesHoldForEverydayActions plays a script without faults. Seeded defects show that the rules detect
// violations.
func TestRobustness_RulesHoldForEverydayActions(t *testing.T) {
	t.Parallel()
	run{"everyday", read(t, "testdata/everyday.actions")}.playScript(t)
}

func read(t *testing.T, path string) robustness.Script {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	script, err := robustness.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return script
}

// TestSearch implements `make robustness`: it plays given seeds, a given script, or new seeds until a time limit.
// The script of a failed run is shrunk.
func TestSearch(t *testing.T) {
	if !isRunRequested() {
		t.Log("`make robustness` says what to search")
		return
	}
	if path := os.Getenv(actionsVariable); path != "" {
		run{"again-" + strings.TrimSuffix(filepath.Base(path), ".actions"), read(t, path)}.playAndShrink(t)
		return
	}
	for _, text := range strings.Fields(os.Getenv(seedsVariable)) {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		runOfSeed(seed).playAndShrink(t)
	}
	if text := os.Getenv(forVariable); text != "" {
		duration, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(duration); time.Now().Before(until); {
			runOfSeed(uint64(rand.Uint32())).playAndShrink(t)
		}
	}
}

// run is a script with the name of its results.
type run struct {
	name   string
	script robustness.Script
}

// runOfSeed generates the run of a seed. Of three consecutive seeds, one has Machines, and another has operators with
// leader election.
func runOfSeed(seed uint64) run {
	if seed%3 == 0 {
		return run{fmt.Sprintf("machines-seed-%d", seed), robustness.Generate(seed, machines)}
	}
	shape := large
	shape.Elects = seed%3 == 1
	return run{fmt.Sprintf("large-seed-%d", seed), robustness.Generate(seed, shape)}
}

// playAndShrink plays a run, and shrinks the actions if the run breaks a rule. Failures of the lab are not shrunk,
// because they may not recur.
func (r run) playAndShrink(t *testing.T) {
	t.Helper()
	t.Run(r.name, func(t *testing.T) {
		found := r.playScript(t)
		if len(found.Violations) == 0 {
			return
		}
		const attempts = 12
		shrunk, last := run{r.name + "-shrunk", r.script}, found
		shrunk.script.Actions = robustness.Shrink(r.script.Actions, attempts, func(fewer []robustness.Action) bool {
			script := r.script
			script.Actions = fewer
			report, err := robustness.Run(t.Context(), shrunk.runOptions(t), script)
			t.Logf("with %d actions: %d violations, error %v", len(fewer), len(report.Violations), err)
			if err != nil || !report.HasSameViolation(found) {
				return false
			}
			last = report
			return true
		})
		if err := shrunk.saveResults(last); err != nil {
			t.Error(err)
		}
		t.Logf("these %d actions make it fail:\n%s", len(last.Script.Actions), last.Script)
	})
}

// playScript plays a run, and returns the report, which is empty if the lab has failed.
func (r run) playScript(t *testing.T) robustness.Report {
	t.Helper()
	report, err := robustness.Run(t.Context(), r.runOptions(t), r.script)
	if err != nil || len(report.Violations) > 0 {
		t.Errorf("%s: the lab's error: %v; violations:\n%s\nThe operator's log is in build/robustness. Again: make robustness ACTIONS=build/robustness/%s.actions\n%s",
			r.name, err, report, r.name, r.script)
		if err := r.saveResults(report); err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		return robustness.Report{}
	}
	judged := fmt.Sprintf("%d changes, %d requests, %d restarts, %d verbs and %d disturbances were judged", report.Changes, report.Requests,
		report.Restarts, report.Verbs, report.PodDisruptions)
	if report.Changes < 20 || report.Requests < 100 || report.Restarts == 0 || report.Verbs < 10 || report.PodDisruptions == 0 {
		t.Errorf("%s: only %s", r.name, judged)
	}
	t.Logf("%s: %d actions in %s; settled after %s; %s", r.name, len(r.script.Actions), robustness.Length(r.script.Actions),
		report.ConvergedAfter.Round(time.Millisecond), judged)
	return report
}

// saveResults writes the results of a failed run.
func (r run) saveResults(report robustness.Report) error {
	if err := os.MkdirAll(resultsDirectory, 0o750); err != nil {
		return err
	}
	write := func(name, text string) error {
		return os.WriteFile(filepath.Join(resultsDirectory, r.name+name), []byte(text), 0o600)
	}
	err := errors.Join(write(".actions", report.Script.String()), write(".log", report.Log), write(".violations", report.String()))
	if report.Traces != "" {
		err = errors.Join(err, write(".traces", report.Traces))
	}
	return err
}

func (r run) runOptions(t *testing.T) robustness.Options {
	t.Helper()
	return robustness.Options{
		Releases: releases.ensureReleases(t), Timeout: e2e.WaitTimeout, QuietPeriod: 4 * time.Second,
		Progress: func(format string, arguments ...any) { t.Logf(r.name+": "+format, arguments...) },
	}
}
