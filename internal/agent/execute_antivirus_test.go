package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func exclusionSteps(steps []string) []string {
	return slices.DeleteFunc(slices.Clone(steps), func(step string) bool { return !strings.Contains(step, "Exclusion ") })
}

// hasExclusions reports whether Microsoft Defender Antivirus excludes all programs named by the spec.
func (r *rig) hasExclusions(spec nodespec.NodeSpec) bool {
	for _, exclusion := range spec.Exclusions {
		if !slices.ContainsFunc(r.Exclusions(), exclusion.Is) {
			return false
		}
	}
	return true
}

// exclusionsResult returns the result of the check of the exclusions.
func (r *rig) exclusionsResult() agentapi.CheckResult {
	r.Helper()
	line, _ := r.run("verify")
	for _, check := range line.Result.Checks {
		if check.Name == "AntivirusExclusions" {
			return check
		}
	}
	r.Fatal("there is no such check")
	return agentapi.CheckResult{}
}

// withoutDefender removes Microsoft Defender Antivirus from the host.
func withoutDefender(r *rig) {
	r.must(r.Host().Services.Stop(r.ctx, host.DefenderService))
	r.must(r.Host().Services.Delete(r.ctx, host.DefenderService))
}

// disabledDefender disables the installed Defender.
func disabledDefender(r *rig) {
	service, _ := r.Service(host.DefenderService)
	service.StartType = host.StartDisabled
	r.must(r.Host().Services.Configure(r.ctx, service.ServiceConfig))
	r.must(r.Host().Services.Stop(r.ctx, host.DefenderService))
}

//
func TestExclusions_SetOnlyIfDefenderRuns(t *testing.T) {
	t.Parallel()
	withSimilarProcess := func(r *rig) {
		withoutDefender(r)
		path := `C:\Program Files\Contoso\Windows Defender Companion.exe`
		r.must(r.Drive().MkdirAll(`C:\Program Files\Contoso`))
		r.must(r.Drive().WriteFile(path, programContent("shim.exe", "v1")))
		r.must(r.Host().Services.Configure(r.ctx, host.ServiceConfig{
			Name: "WinDefendCompanion", DisplayName: "Windows Defender Companion", CommandLine: host.CommandLine(path), StartType: host.StartAutomatic,
		}))
		r.must(r.Host().Services.Start(r.ctx, "WinDefendCompanion"))
	}
	for name, test := range map[string]struct {
		prepare func(*rig)
		want    bool
	}{
		"a host on which Defender is at work":                           {func(*rig) {}, true},
		"a host on which Defender is installed but stopped":             {disabledDefender, false},
		"a host without Defender":                                       {withoutDefender, false},
		"a host with another process that is named Windows Defender...": {withSimilarProcess, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			test.prepare(r)
			r.before = r.Snapshot()
			steps := r.configureHost()
			if got := len(exclusionSteps(steps)); (got == len(r.fullSpec().Exclusions)) != test.want || !test.want && got > 0 {
				t.Errorf("steps: %q", exclusionSteps(steps))
			}
			if r.hasExclusions(r.fullSpec()) != test.want {
				t.Errorf("exclusions: %v", r.Exclusions())
			}
			if check := r.exclusionsResult(); !check.Passed {
				t.Error(check.Message)
			}
			if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
				t.Errorf("there is more to do: %s", formatSteps(p))
			}
			r.awaitServices()
			r.removeNode()
			compareSnapshots(t, r.before, r.Snapshot())
		})
	}
}

//
func TestExclusions_AddedBeforeContainerdStarts(t *testing.T) {
	t.Parallel()
	steps := newRig(t).start().configureHost()
	first, start := slices.IndexFunc(steps, func(s string) bool { return strings.HasPrefix(s, "AddExclusion") }), slices.Index(steps, "StartService containerd")
	if first < 0 || start < first {
		t.Error(steps)
	}
}

//
func TestExclusions_UserExclusionsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	for _, own := range []host.Exclusion{{Kind: host.ExcludePath, Value: `D:\data`}, r.fullSpec().Exclusions[0]} {
		r.must(r.Host().Antivirus.AddExclusion(r.ctx, own))
	}
	r.before = r.Snapshot()
	steps := r.configureHost()
	if got := exclusionSteps(steps); len(got) != len(r.fullSpec().Exclusions)-1 {
		t.Errorf("steps: %q", got)
	}
	r.awaitServices()
	r.removeNode()
	compareSnapshots(t, r.before, r.Snapshot())
}

func TestExclusions_FollowRelease(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	former := r.fullSpec().Exclusions
	r.versions = versions{"containerd": "v2"}
	r.mustApply(r.fullSpec())
	if !r.hasExclusions(r.fullSpec()) {
		t.Errorf("the new release is scanned: %v", r.Exclusions())
	}
	if slices.ContainsFunc(r.Exclusions(), former[0].Is) {
		t.Error("the former containerd, which does not run, is excluded")
	}
	if !slices.ContainsFunc(r.Exclusions(), former[1].Is) {
		t.Error("the former shim, which runs as long as its container, is scanned")
	}
	for _, process := range r.RunningProcesses() {
		if nodespec.IsSamePath(process.Path, former[1].Value) {
			r.must(r.Host().Processes.Kill(r.ctx, process.PID))
		}
	}
	r.mustApply(r.fullSpec())
	if len(r.Exclusions()) != len(r.fullSpec().Exclusions) {
		t.Errorf("what nothing runs from is excluded: %v", r.Exclusions())
	}
}

// An externally managed Defender blocks neither the configuration nor the removal of a host.
func TestDefender_RefusalBlocksNothing(t *testing.T) {
	t.Parallel()
	t.Run("changes of its exclusions", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		restore := r.RefuseExclusionChanges()
		if got := exclusionSteps(r.configureHost()); len(got) == 0 {
			t.Error("it was not asked")
		}
		if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("it is asked again and again: %s", formatSteps(p))
		}
		if check := r.exclusionsResult(); check.Passed || !check.Advisory || !strings.Contains(check.Message, "containerd.exe") || !strings.Contains(check.Message, "tamper protection") {
			t.Errorf("%+v", check)
		}
		restore()
		if steps := r.mustApply(r.fullSpec()); len(exclusionSteps(steps)) != len(r.fullSpec().Exclusions) || !r.hasExclusions(r.fullSpec()) {
			t.Errorf("the next apply does not ask again: %q", steps)
		}
		if check := r.exclusionsResult(); !check.Passed {
			t.Error(check.Message)
		}
		r.awaitServices()
		r.removeNode()
		compareSnapshots(t, r.before, r.Snapshot())
	})
	t.Run("to show its exclusions", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		r.HideExclusions()
		if got := exclusionSteps(r.configureHost()); len(got) != 0 {
			t.Errorf("steps: %q", got)
		}
		if check := r.exclusionsResult(); check.Passed || !check.Advisory {
			t.Errorf("%+v", check)
		}
	})
	t.Run("to take an exclusion away again", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.RefuseExclusionChanges()
		r.removeNode()
		if !r.hasExclusions(r.fullSpec()) {
			t.Error("the test has nothing to refuse")
		}
	})
}

func TestDefender_FailureBlocksNothing(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Exclusions", "AddExclusion"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			r.OnOperation(func(o fake.Operation) error {
				if o.Interface == "Antivirus" && o.Method == method {
					return errors.New("WMI: invalid class (0x80041010)")
				}
				return nil
			})
			r.configureHost()
			if check := r.exclusionsResult(); check.Passed || !check.Advisory || !strings.Contains(check.Message, "0x80041010") {
				t.Errorf("%+v", check)
			}
			r.awaitServices()
			r.removeNode()
			compareSnapshots(t, r.before, r.Snapshot())
		})
	}
}

// A Defender that becomes active later is drift, which the service repairs without the operator. R-099
func TestDefender_LaterStartRepairedByService(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	disabledDefender(r)
	r.before = r.Snapshot()
	r.configureHost()
	r.awaitServices()
	r.advanceTime(timeouts.DriftPollInterval)
	service, _ := r.Service(host.DefenderService)
	service.StartType = host.StartAutomatic
	r.must(r.Host().Services.Configure(r.ctx, service.ServiceConfig))
	r.must(r.Host().Services.Start(r.ctx, host.DefenderService))
	r.advanceTime(timeouts.DriftCheckInterval)
	if !r.hasExclusions(r.fullSpec()) {
		t.Fatalf("exclusions: %v", r.Exclusions())
	}
	r.removeNode()
	if got := r.Snapshot().Exclusions; len(got) != 0 {
		t.Errorf("what the service added is not taken away: %v", got)
	}
}

func TestDefender_ServiceTriesRefusedExclusionsOnce(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	for _, exclusion := range r.fullSpec().Exclusions {
		r.must(r.Host().Antivirus.RemoveExclusion(r.ctx, exclusion))
	}
	r.RefuseExclusionChanges()
	queries := 0
	r.OnOperation(func(o fake.Operation) error {
		if o.Interface == "Antivirus" && o.Method == "AddExclusion" {
			queries++
		}
		return nil
	})
	r.advanceTime(timeouts.AntivirusCacheTTL)
	r.advanceTime(timeouts.AntivirusCacheTTL)
	if want := len(r.fullSpec().Exclusions); queries != want {
		t.Errorf("Defender was asked %d times, want %d", queries, want)
	}
	if n := strings.Count(r.readLog(), "tamper protection"); n == 0 {
		t.Errorf("the log does not say so: %s", r.readLog())
	}
	if events := r.eventsByID(report.EventRepaired); len(events) != 0 {
		t.Errorf("it says that it was repaired: %+v", events)
	}
}

// The query costs Defender and WMI some work. A service without drift queries seldom.
func TestDefender_ServiceQueriesSeldom(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	queries := 0
	r.OnOperation(func(o fake.Operation) error {
		if o.Interface == "Antivirus" && o.Method == "Exclusions" {
			queries++
		}
		return nil
	})
	for range 10 {
		r.advanceTime(timeouts.DriftCheckInterval)
	}
	if queries > 1 {
		t.Errorf("%d times in %s", queries, 10*timeouts.DriftCheckInterval)
	}
}
