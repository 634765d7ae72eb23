// Package soak runs a fleet for days in virtual time, and detects growth. See package lab/soak.
package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/soak"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

func TestMain(m *testing.M) { os.Exit(e2e.Main(m)) }

// Variables set by `make soak`.
const (
	daysVariable   = "SOAK_DAYS"   // number of days
	resultVariable = "SOAK_RESULT" // the document for the result
)

// resultsDirectory is the directory for the data that explains a run.
const resultsDirectory = "../../build/soak"

// clockStep is shorter than the maximum age of an agent's report.
const clockStep = 10 * time.Minute

// shortDays is the number of days in the run that is part of all tests: one to warm up, and two to compare.
const shortDays = 3

func TestNothingGrowsFromDayToDay(t *testing.T) {
	days := shortDays
	if text := os.Getenv(daysVariable); text != "" {
		var err error
		if days, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", daysVariable, err)
		}
	}
	results := filepath.Join(resultsDirectory, fmt.Sprintf("%d-days", days))
	if err := os.MkdirAll(results, 0o750); err != nil {
		t.Fatal(err)
	}
	report, err := soak.Run(t.Context(), soak.Options{
		Days: days, Releases: generateReleases(t), Stride: clockStep, Timeout: 2 * e2e.WaitTimeout, Dir: results,
		Progress: func(format string, arguments ...any) { t.Logf(format, arguments...) },
	})
	if err != nil {
		t.Errorf("%v\n%s has the operator's log", err, results)
	}
	for _, v := range report.Verdicts {
		t.Log(v)
	}
	for _, grown := range soak.Grown(report.Verdicts) {
		t.Errorf("it grows: %s\n%s has the operator's log, and for each day the profiles and the hosts' files", grown, results)
	}
	if path := os.Getenv(resultVariable); path != "" && err == nil {
		if err := os.WriteFile(path, []byte(soak.Document(report)), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// generateReleases generates the operator's releases.
func generateReleases(t *testing.T) (releases []testenv.Release) {
	t.Helper()
	dir := t.TempDir()
	for i := range soak.Releases {
		release := testenv.Release{Version: fmt.Sprintf("12.0.%d", i), PayloadDirectory: filepath.Join(dir, strconv.Itoa(i))}
		_, err := labpayload.Generate(release.PayloadDirectory, "", release.Version, labpayload.Options{
			SizePercent: 5, AgentBytes: 128 << 10,
			Versions: map[string]string{"kubelet": fmt.Sprintf("v1.36.%d", 3+i), payload.ComponentAgent: release.Version},
		})
		if err != nil {
			t.Fatalf("make the releases: %v", err)
		}
		releases = append(releases, release)
	}
	return releases
}
