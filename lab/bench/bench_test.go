package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/bench/fleet"
)

// TestMain also implements the subcommand fleet, because bench starts this program as child: the fleet keeps
// all budgets, unless spoilEnv is set.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "fleet" {
		if err := runFakeFleet(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// spoilEnv contains the size of the fleet with too many reboots ("10"), or of the fleet that cannot be measured
// ("-10").
const spoilEnv = "WMCO_BENCH_TEST_SPOIL"

func runFakeFleet(arguments []string) error {
	command := fleet.Command()
	if err := command.ParseFlags(arguments); err != nil {
		return err
	}
	flag := func(name string) string { return command.Flag(name).Value.String() }
	if os.Getenv(spoilEnv) == "-"+flag("hosts") {
		return fmt.Errorf("no hosts today")
	}
	for _, each := range newPassingResult().Fleets {
		if fmt.Sprint(each.Hosts) != flag("hosts") || fmt.Sprint(each.SizePercent) != flag("payload-percent") || each.RoundTrip.String() != flag("round-trip") {
			continue
		}
		for i := range each.Phases {
			if os.Getenv(spoilEnv) == flag("hosts") {
				each.Phases[i].Worst.Reboots = 2
			}
		}
		data, err := json.Marshal(each)
		if err != nil {
			return err
		}
		return os.WriteFile(flag("json"), data, 0o600)
	}
	return fmt.Errorf("no such fleet: %q", arguments)
}

// runBench runs the subcommand and returns the output and the written result.
func runBench(t *testing.T, arguments ...string) (output string, result Result, err error) {
	t.Helper()
	var out bytes.Buffer
	command := Command()
	command.SetOut(&out)
	command.SilenceErrors, command.SilenceUsage = true, true
	file := filepath.Join(t.TempDir(), "bench", "results.json")
	command.SetArgs(append(arguments, "--json="+file, "--payload="+t.TempDir()))
	err = command.ExecuteContext(t.Context())
	data, readErr := os.ReadFile(file)
	if readErr == nil {
		readErr = json.Unmarshal(data, &result)
	}
	if readErr != nil {
		t.Logf("results: %v", readErr)
	}
	return out.String(), result, err
}

func TestBench(t *testing.T) {
	t.Run("measures all fleets, and prints and writes each budget with its figure", func(t *testing.T) {
		output, result, err := runBench(t)
		if err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		if len(result.Fleets) != len(fleetRuns()) || len(result.Budgets) != len(allBudgets()) || result.Machine.Cores == 0 || result.Machine.Day == "" {
			t.Errorf("%+v", result)
		}
		for _, want := range []string{
			"HOSTS", "SUBJECT", "1,000 instances, idle", "199 MiB", "≤ 200 MiB", "< 600 s",
			fmt.Sprintf("bench: %d of %d budgets kept, 1 not measured", len(allBudgets())-1, len(allBudgets())), // no payload with patches
		} {
			if !strings.Contains(output, want) {
				t.Errorf("%q is missing in:\n%s", want, output)
			}
		}
	})
	t.Run("fails if a budget is exceeded, and says which", func(t *testing.T) {
		t.Setenv(spoilEnv, "10")
		output, result, err := runBench(t, "--hosts=1,10")
		const want = "reboots of first configuration, worst host of all fleets: 2 (budget ≤ 1)"
		if err == nil || !strings.HasSuffix(err.Error(), want) || len(withVerdict(result.Budgets, Over)) != 1 || !strings.Contains(output, "OVER") {
			t.Errorf("error %v\n%s", err, output)
		}
	})
	t.Run("writes what was measured before a fleet that cannot be", func(t *testing.T) {
		t.Setenv(spoilEnv, "-10")
		output, result, err := runBench(t)
		if err == nil || !strings.Contains(err.Error(), "measure a fleet of 10 hosts") || len(result.Fleets) != 3 {
			t.Errorf("%d fleets, error %v\n%s", len(result.Fleets), err, output)
		}
	})
	for name, c := range map[string]struct{ flag, want string }{
		"a fleet that there is not": {"--hosts=1,2", "--hosts=2"},
		"no time to be idle":        {"--idle=0s", "--idle"},
		"no time for a fleet":       {"--limit=-1s", "--limit"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if _, _, err := runBench(t, c.flag); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestPatchesOf_MissingPayloadHasNone(t *testing.T) {
	if patches, err := patchesOf(t.TempDir()); err != nil || patches != nil {
		t.Errorf("a payload that does not exist has %v, error %v", patches, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := patchesOf(dir); err == nil {
		t.Error("a payload that cannot be read has no patches")
	}
}

// newPassingResult returns a complete run that only just keeps all budgets.
func newPassingResult() Result {
	arrivals := func(hosts int, first, last float64) []float64 {
		at := make([]float64, hosts)
		for i := range at {
			at[i] = first + (last-first)*float64(i)/float64(max(1, hosts-1))
		}
		at[hosts-1] = last
		return at
	}
	join := func(hosts int, each, seconds float64, memory int64) fleet.Phase {
		n := float64(hosts)
		return fleet.Phase{
			Scenario: fleet.Join, Seconds: seconds, TransferSeconds: 2.9, Arrivals: arrivals(hosts, min(14.9, seconds), seconds), Reads: int(30 * n * each), Writes: int(10 * n * each),
			CPU: fleet.CPU{Operator: n * each, ControlPlane: n * each, Hosts: n * each}, Memory: &fleet.Memory{Peak: memory, Resident: memory},
			Worst: fleet.Cost{Connections: 2, Execs: 8, SFTPSessions: 2, Reboots: 1, Received: 1000},
		}
	}
	idle := fleet.Phase{Scenario: fleet.Idle, Seconds: 60, CPU: fleet.CPU{Operator: 0.6}, Memory: &fleet.Memory{Peak: 256 * mib, Resident: 199 * mib}}
	// A restarted operator may write, and hosts may start processes without the operator.
	restart := fleet.Phase{Scenario: fleet.Restart, Seconds: 19.9, Reads: 4000, Writes: 1000, All: fleet.Cost{Processes: 1}}
	same := fleet.Phase{Scenario: fleet.SamePrograms, Seconds: 1.9, Writes: 3}
	upgrade := fleet.Phase{Scenario: fleet.Upgrade, Worst: fleet.Cost{Connections: 2, Execs: 8, Received: 100}}
	setting := fleet.Phase{Scenario: fleet.Setting, Seconds: 299, Worst: fleet.Cost{Connections: 2}}
	alone := join(1, 1, 2.9, 100*mib)
	alone.Reads, alone.Writes = 40, 19
	return Result{Patches: []Patch{{File: "kubelet.exe", FileBytes: 100, PatchBytes: 10}, {File: "wicd.exe", FileBytes: 100, PatchBytes: 1}}, Fleets: []fleet.Result{
		{Hosts: 1, SizePercent: realSize, PayloadBytes: 4000, Phases: []fleet.Phase{join(1, 1, 4.9, 100*mib)}},
		{Hosts: 1, SizePercent: realSize, PayloadBytes: 4000, RoundTrip: distant, Phases: []fleet.Phase{join(1, 1, 14.8, 100*mib)}},
		{Hosts: 1, SizePercent: usualSize, Phases: []fleet.Phase{alone, idle, restart, same, upgrade}},
		{Hosts: 10, SizePercent: usualSize, Phases: []fleet.Phase{join(10, 1, 9.9, 256*mib), idle, restart}},
		{Hosts: 50, SizePercent: usualSize, Phases: []fleet.Phase{join(50, 1, 59.9, 256*mib), idle, restart, same}},
		{Hosts: 100, SizePercent: usualSize, Phases: []fleet.Phase{join(100, 1, 50, 256*mib), upgrade}},
		{Hosts: 300, SizePercent: usualSize, Phases: []fleet.Phase{join(300, 1, 120, 256*mib)}},
		{Hosts: 1000, SizePercent: usualSize, Phases: []fleet.Phase{join(1000, 1.19, 599, 256*mib), idle, restart, setting}},
	}}
}

// findPhase returns a scenario in the fleet with the usual programs, for a test to modify.
func findPhase(r *Result, hosts int, of fleet.Scenario) *fleet.Phase {
	for i := range r.Fleets {
		if each := &r.Fleets[i]; each.Hosts == hosts && each.SizePercent == usualSize {
			for j := range each.Phases {
				if each.Phases[j].Scenario == of {
					return &each.Phases[j]
				}
			}
		}
	}
	panic("there is no such fleet, or nothing of that kind happened to it")
}

// distantJoinSeconds returns the time of the distant host.
func distantJoinSeconds(r *Result) *float64 { return &r.Fleets[1].Phases[0].Seconds }

func TestBudgets(t *testing.T) {
	t.Run("a run at the limits keeps all budgets", func(t *testing.T) {
		for _, line := range evaluateBudgets(newPassingResult()) {
			if line.Verdict != Kept || line.Measured == nil {
				t.Errorf("%+v", line)
			}
		}
	})
	for name, c := range map[string]struct {
		mutate  func(*Result)
		what    string
		verdict Verdict
	}{
		"a third connection":                       {func(r *Result) { findPhase(r, 1000, fleet.Join).Worst.Connections = 3 }, "SSH connections", Over},
		"a ninth exec":                             {func(r *Result) { findPhase(r, 10, fleet.Join).Worst.Execs = 9 }, "execs", Over},
		"one PowerShell":                           {func(r *Result) { findPhase(r, 50, fleet.Join).Worst.PowerShell = 1 }, "PowerShell starts", Over},
		"a third SFTP session":                     {func(r *Result) { r.Fleets[1].Phases[0].Worst.SFTPSessions = 3 }, "SFTP sessions", Over},
		"a second reboot":                          {func(r *Result) { findPhase(r, 1, fleet.Join).Worst.Reboots = 2 }, "reboots", Over},
		"one byte too many":                        {func(r *Result) { r.Fleets[0].Phases[0].Worst.Received = 1001 }, "bytes on the wire", Over},
		"a read too many for a host alone":         {func(r *Result) { findPhase(r, 1, fleet.Join).Reads = 41 }, "API reads", Over},
		"a write too many for a host alone":        {func(r *Result) { findPhase(r, 1, fleet.Join).Writes = 20 }, "API writes", Over},
		"a read too many for each of ten hosts":    {func(r *Result) { findPhase(r, 10, fleet.Join).Reads = 401 }, "API reads", Over},
		"a write too many for each of fifty hosts": {func(r *Result) { findPhase(r, 50, fleet.Join).Writes = 751 }, "API writes", Over},
		"a write too many in a fleet": {func(r *Result) {
			findPhase(r, 1000, fleet.Join).Writes, findPhase(r, 1000, fleet.Join).Reads = 15001, 30000
		}, "API writes", Over},
		"a connection while left alone":               {func(r *Result) { findPhase(r, 1000, fleet.Idle).Worst.Connections = 1 }, "SSH connections", Over},
		"an exec while left alone":                    {func(r *Result) { findPhase(r, 10, fleet.Idle).Worst.Execs = 1 }, "execs", Over},
		"a write while left alone":                    {func(r *Result) { findPhase(r, 50, fleet.Idle).Writes = 1 }, "API writes", Over},
		"a process started while left alone":          {func(r *Result) { findPhase(r, 1, fleet.Idle).All.Processes = 1 }, "process starts on hosts", Over},
		"a connection of a restarted operator":        {func(r *Result) { findPhase(r, 1000, fleet.Restart).Worst.Connections = 1 }, "SSH connections", Over},
		"a service stopped by a restarted operator":   {func(r *Result) { findPhase(r, 1, fleet.Restart).All.Services = 1 }, "service operations on hosts", Over},
		"a restart among a thousand that reads a lot": {func(r *Result) { findPhase(r, 1000, fleet.Restart).Reads = 4001 }, "API requests for each instance", Over},
		"a restart among a thousand that takes long":  {func(r *Result) { findPhase(r, 1000, fleet.Restart).Seconds = 20 }, "start to idle", Slow},
		"a connection of another version":             {func(r *Result) { findPhase(r, 50, fleet.SamePrograms).Worst.Connections = 1 }, "SSH connections", Over},
		"one byte where nothing differs":              {func(r *Result) { findPhase(r, 1, fleet.SamePrograms).Worst.Received = 1 }, "bytes on the wire", Over},
		"a restarted service where nothing differs":   {func(r *Result) { findPhase(r, 1, fleet.SamePrograms).All.Services = 1 }, "service operations on hosts", Over},
		"a slow upgrade where nothing differs":        {func(r *Result) { findPhase(r, 1, fleet.SamePrograms).Seconds = 2 }, "start of the operator to the new version", Slow},
		"a slow host":                                 {func(r *Result) { findPhase(r, 1, fleet.Join).Seconds = 3 }, "ConfigMap to Ready", Slow},
		"a slow host with programs of the real size":  {func(r *Result) { r.Fleets[0].Phases[0].Seconds, *distantJoinSeconds(r) = 5, 14.9 }, "ConfigMap to Ready", Slow},
		"ten slow hosts":                              {func(r *Result) { findPhase(r, 10, fleet.Join).Seconds = 10 }, "ConfigMap to all Ready", Slow},
		"fifty slow hosts":                            {func(r *Result) { findPhase(r, 50, fleet.Join).Seconds = 60 }, "ConfigMap to all Ready", Slow},
		"a host that is slow because it is far away":  {func(r *Result) { *distantJoinSeconds(r) = 14.9 }, "additional time", Slow},
		"programs that take long to a distant host":   {func(r *Result) { r.Fleets[1].Phases[0].TransferSeconds = 3 }, "transfer of the packed programs", Slow},
		"two hundred hosts that take long":            {func(r *Result) { findPhase(r, 300, fleet.Join).Arrivals[199] = 100 }, "ConfigMap to 200 Ready", Slow},
		"a late first host among a thousand":          {func(r *Result) { findPhase(r, 1000, fleet.Join).Arrivals[0] = 15 }, "ConfigMap to the first Ready", Slow},
		"a thousand hosts that take long":             {func(r *Result) { findPhase(r, 1000, fleet.Join).Seconds = 600 }, "ConfigMap to all Ready", Slow},
		"one MiB too many in a fleet":                 {func(r *Result) { findPhase(r, 300, fleet.Join).Memory.Peak += mib }, "operator's maximum memory", Over},
		"one MiB too many on another occasion":        {func(r *Result) { findPhase(r, 1000, fleet.Setting).Memory = &fleet.Memory{Peak: 257 * mib} }, "operator's maximum memory", Over},
		"one MiB too many for a host alone":           {func(r *Result) { r.Fleets[0].Phases[0].Memory.Peak += mib }, "operator's maximum memory", Over},
		"a thousand instances known with too much": {func(r *Result) {
			findPhase(r, 1000, fleet.Idle).Memory = &fleet.Memory{Resident: 201 * mib}
		}, "operator's memory", Over},
		"an idle operator that works":       {func(r *Result) { findPhase(r, 1000, fleet.Idle).CPU.Operator = 0.7 }, "operator's processor time", Slow},
		"a setting with three connections":  {func(r *Result) { findPhase(r, 1000, fleet.Setting).Worst.Connections = 3 }, "SSH connections, worst host", Over},
		"a setting that restarts a host":    {func(r *Result) { findPhase(r, 1000, fleet.Setting).Worst.Reboots = 1 }, "reboots", Over},
		"a setting that is slow":            {func(r *Result) { findPhase(r, 1000, fleet.Setting).Seconds = 300 }, "time for all nodes", Slow},
		"requests that grow with the fleet": {func(r *Result) { findPhase(r, 100, fleet.Join).Reads = 2900 }, "API requests", Over},
		"processor time that grows with the fleet": {func(r *Result) {
			findPhase(r, 1000, fleet.Join).CPU.ControlPlane, findPhase(r, 1000, fleet.Join).CPU.Hosts = 1300, 1080
		}, "control plane's processor time", Slow},
		"an upgrade that sends everything again":             {func(r *Result) { findPhase(r, 1, fleet.Upgrade).Worst.Received = 101 }, "bytes on the wire", Over},
		"an upgrade with a third connection":                 {func(r *Result) { findPhase(r, 1, fleet.Upgrade).Worst.Connections = 3 }, "SSH connections", Over},
		"an upgrade with a ninth exec":                       {func(r *Result) { findPhase(r, 1, fleet.Upgrade).Worst.Execs = 9 }, "execs", Over},
		"an upgrade that restarts a host":                    {func(r *Result) { findPhase(r, 1, fleet.Upgrade).Worst.Reboots = 1 }, "reboots", Over},
		"an upgrade of many with a third connection for one": {func(r *Result) { findPhase(r, 100, fleet.Upgrade).Worst.Connections = 3 }, "SSH connections, worst host", Over},
		"an upgrade of many with a ninth exec for one":       {func(r *Result) { findPhase(r, 100, fleet.Upgrade).Worst.Execs = 9 }, "execs, worst host", Over},
		"a large patch": {func(r *Result) { r.Patches[1].PatchBytes = 11 }, "size of the patch", Over},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPassingResult()
			c.mutate(&r)
			var otherLines []Line
			for _, line := range evaluateBudgets(r) {
				if line.Verdict != Kept {
					otherLines = append(otherLines, line)
				}
			}
			if len(otherLines) != 1 || otherLines[0].What != c.what || otherLines[0].Verdict != c.verdict {
				t.Errorf("got %+v, want %s %s", otherLines, c.what, c.verdict)
			}
		})
	}
	t.Run("a run that measured nothing praises nothing", func(t *testing.T) {
		for _, line := range evaluateBudgets(Result{}) {
			if line.Verdict != NotMeasured || line.Measured != nil {
				t.Errorf("%+v", line)
			}
		}
	})
	t.Run("a fleet whose operator was no program of its own says nothing of its memory", func(t *testing.T) {
		r := Result{Fleets: []fleet.Result{{Hosts: 1000, SizePercent: usualSize, Phases: []fleet.Phase{{Scenario: fleet.Idle, Seconds: float64(time.Minute / time.Second)}}}}}
		for _, line := range evaluateBudgets(r) {
			if line.What == "operator's memory" && line.Verdict != NotMeasured {
				t.Errorf("%+v", line)
			}
		}
	})
}
