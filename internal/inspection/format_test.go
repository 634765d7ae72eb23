package inspection

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/inspection/diagnosis"
	"github.com/windows-machine-config/wmco/internal/inspection/dryrun"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files")

// compareGolden compares a text with a file.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); go test ./internal/inspection -update writes it:\n%s", path, diff)
	}
}

func TestFormatForecasts(t *testing.T) {
	compareGolden(t, "plan.txt", formatForecasts([]Forecast{
		{
			Instance: "win-1", Address: "10.0.0.1", Node: "win-1", Drains: true, FilesToSend: 2, BytesToSend: 13 << 20,
			Notes: []string{"The host is paused: the operator makes no changes until it is resumed."},
			Steps: []dryrun.Step{
				{Name: `InstallRelease kubelet`, Reason: "the release is not on the host"},
				{Name: "StopService kubelet", Reason: "its command line differs", DisruptsPods: true},
				{Name: "Reboot", Reason: "the Windows feature Containers takes effect only after a restart", DisruptsPods: true, Restarts: true},
			},
			Needs: []nodespec.Need{nodespec.NeedPodSubnet},
			Pods: []dryrun.Pod{{Namespace: "shop", Name: "web-1"},
				{Namespace: "shop", Name: "web-2", Held: "These PodDisruptionBudgets allow no disruption now: shop/web."}},
		},
		{Instance: "win-2", Address: "win-2.example.com", Node: "win-2"},
		{Instance: "win-3", Address: "10.0.0.3", Error: "host 10.0.0.3: no response on TCP port 22 (i/o timeout). Check that the host runs."},
		{Instance: "win-5", Address: "10.0.0.5", Node: "win-5", Removed: true, Notes: []string{"The host is being removed. The operator drains the node."}},
		{Instance: "win-6", Address: "10.0.0.6", Node: "win-6", Replaced: true, Notes: []string{"Machine win-6 is deleted and replaced when the WindowsDisruptionPolicy allows it."}},
		{Instance: "win-4", Address: "10.0.0.4", Node: "win-4", Drains: true,
			Steps: []dryrun.Step{{Name: "StartService kube-proxy", Reason: "it does not run", DisruptsPods: true}}},
	})+formatForecasts(nil))
}

func TestFormatDiagnosis(t *testing.T) {
	compareGolden(t, "diagnosis.txt", formatDiagnosis(Diagnosis{Host: "10.0.0.1", User: "Administrator", Checks: []diagnosis.Check{
		{Name: "name", Outcome: diagnosis.Passed, Message: "10.0.0.1 is an IP address."},
		{Name: "TCP", Outcome: diagnosis.Failed, Message: "host 10.0.0.1: no TCP connection to port 22 (connection refused)",
			Remedy: "Check the address."},
		{Name: "administrator", Outcome: diagnosis.NotReached},
	}})+formatDiagnosis(Diagnosis{Host: "10.0.0.2", Instance: "win-2", User: "capi"}))
}

func TestPlanStatus(t *testing.T) {
	changes, same := Forecast{Steps: []dryrun.Step{{}}}, Forecast{}
	for name, c := range map[string]struct {
		forecasts []Forecast
		want      error
	}{
		"nothing would be changed":              {[]Forecast{same, same}, nil},
		"something would, on one of two hosts":  {[]Forecast{changes, same}, Found},
		"a host is removed":                     {[]Forecast{same, {Removed: true}}, Found},
		"a Machine is replaced":                 {[]Forecast{same, {Replaced: true}}, Found},
		"of one host it is not known":           {[]Forecast{changes, {Error: "no answer"}, same}, ExitStatus(1)},
		"there are no hosts, so nothing either": {nil, nil},
	} {
		if got := planStatus(c.forecasts); !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// run runs a command without an operator's configuration.
func run(t *testing.T, in io.Reader, configure func() (operator.Config, error), arguments ...string) error {
	t.Helper()
	root := &cobra.Command{Use: "wmco", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands(configure)...)
	root.SetIn(in)
	root.SetOut(io.Discard)
	root.SetArgs(arguments)
	return root.ExecuteContext(t.Context())
}

func TestCommand_InvalidArgumentsRejected(t *testing.T) {
	for line, message := range map[string]string{
		"plan": "specify the names of hosts, or --all", "plan win-1 --all": "specify the names of hosts, or --all",
		"plan --all -o yaml": "use text or json", "diagnose": "accepts 1 arg",
	} {
		err := run(t, bytes.NewReader(nil), func() (operator.Config, error) {
			t.Error("the operator's configuration was read")
			return operator.Config{}, errors.New("it was")
		}, strings.Fields(line)...)
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestCommand_EndsWhenStandardInputCloses(t *testing.T) {
	command := &cobra.Command{}
	in, caller := io.Pipe()
	command.SetIn(in)
	command.SetContext(t.Context())
	o := options{attached: true}
	ctx, cancel := o.newCallerContext(command)
	defer cancel()
	if ctx.Err() != nil {
		t.Error("it has ended before its caller")
	}
	if err := caller.Close(); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), errCallerGone) {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

func TestFormatRuns(t *testing.T) {
	at := func(second int, line agentapi.Line) agentapi.Line {
		line.Time = time.Date(2026, 11, 25, 19, 13, second, 0, time.UTC)
		return line
	}
	step := agentapi.Step{Name: "StartService containerd", Reason: "it does not run", Index: 2, Of: 2}
	state := func(state agentapi.StepState, detail string) agentapi.Line {
		each := step
		each.State, each.Detail = state, detail
		return agentapi.Line{Type: agentapi.TypeStep, Step: &each}
	}
	hello := func(name agentapi.Name) agentapi.Line {
		return agentapi.Line{Type: agentapi.TypeHello, Hello: &agentapi.Hello{Version: "12.0.0", Command: name, BootID: "b1", PID: 4711}}
	}
	compareGolden(t, "runs.txt", formatRuns([]agentapi.Run{
		{Command: agentapi.Apply, Lines: []agentapi.Line{
			at(0, hello(agentapi.Apply)), at(1, state(agentapi.StepStarted, "")), at(16, state(agentapi.StepProgress, "15s: it starts")),
			at(20, agentapi.Line{Type: agentapi.TypeFailure, Failure: &agentapi.Failure{Reason: agentapi.ReasonServiceFailed, Step: step.Name, Message: "it ends at once\x1b[2J"}}),
		}},
		{Command: agentapi.Verify, Lines: []agentapi.Line{at(30, hello(agentapi.Verify)), at(31, agentapi.Line{Type: agentapi.TypeResult, Result: &agentapi.Result{
			Checks: []agentapi.CheckResult{{Name: "KubeletHealthy", Passed: true}, {Name: "NetworkReady", Message: "there is no network"}}}})}},
		{Command: agentapi.Rollback, Lines: []agentapi.Line{at(40, state(agentapi.StepDone, "")), at(41, agentapi.Line{Type: agentapi.TypeRebooting, Result: &agentapi.Result{}})}},
		{Command: agentapi.Commit, Lines: []agentapi.Line{at(42, agentapi.Line{Type: agentapi.TypeResult, Result: &agentapi.Result{
			Plan: &plan.Plan{Needs: []nodespec.Need{nodespec.NeedPodSubnet}}, NoRollbackReason: "it was not applied", NotRestored: []string{"a", "b"}}})}},
		{Command: agentapi.Remove},
	}))
}
