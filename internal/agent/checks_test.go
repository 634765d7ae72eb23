package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestVerify_OnlyFailedCheckHasHint(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.configureHost()
	spec := r.fullSpec()
	spec.Checks = []nodespec.Check{
		{Name: "AgentIsThere", Kind: nodespec.CheckFile, Target: nodespec.SpecPath, Advisory: true, Hint: "Look at the agent."},
		{Name: "NothingIsThere", Kind: nodespec.CheckFile, Target: `C:\nothing`, Advisory: true, Hint: "Look at the disk."},
	}
	r.must(r.Drive().WriteFile(nodespec.SpecPath, mustEncode(t, spec)))
	line, _ := r.run("verify")
	if len(line.Result.Checks) != 2 || !line.Result.Checks[0].Passed || line.Result.Checks[1].Passed || !line.Result.Checks[1].Advisory {
		t.Fatalf("%+v", line.Result.Checks)
	}
	if message := line.Result.Checks[0].Message; strings.Contains(message, "Look at") {
		t.Errorf("a check that passes has a hint: %s", message)
	}
	if message := line.Result.Checks[1].Message; !strings.Contains(message, "does not exist. Look at the disk.") {
		t.Errorf("got %q", message)
	}
}

// recordingProbes records the client certificate of a request and answers 200.
type recordingProbes struct {
	host.Probes
	shown *[]byte
}

func (p recordingProbes) HTTPGet(_ context.Context, _ string, client []byte) (int, string, error) {
	*p.shown = client
	return 200, "", nil
}

//
func TestVerify_ExporterCheckUsesKubeletCertificate(t *testing.T) {
	t.Parallel()
	const current = pki + `\kubelet-client-current.pem`
	r := newConfiguredRig(t)
	var shown []byte
	r.overrideHost(func(h *host.Host) { h.Probes = recordingProbes{h.Probes, &shown} })
	evaluate := func(check nodespec.Check) {
		spec := r.fullSpec()
		spec.Checks = []nodespec.Check{check}
		r.must(r.Drive().WriteFile(nodespec.SpecPath, mustEncode(t, spec)))
		if line, _ := r.run("verify"); len(line.Result.Checks) != 1 || !line.Result.Checks[0].Passed {
			t.Fatalf("%+v", line.Result)
		}
	}
	exporter := nodespec.Check{Name: "ExporterServes", Kind: nodespec.CheckHTTP, Target: "https://127.0.0.1:9182/metrics"}
	if evaluate(exporter); shown != nil {
		t.Error("one that asks for no certificate is shown one")
	}
	exporter.ClientCertificate = current
	want, err := r.Drive().ReadFile(current)
	r.must(err)
	if evaluate(exporter); len(shown) == 0 || string(shown) != string(want) {
		t.Errorf("it is shown %d bytes, want %d", len(shown), len(want))
	}
	r.must(r.Drive().Remove(current))
	if evaluate(exporter); shown != nil {
		t.Error("a file that is not there is shown")
	}
}

// The status of a Node from before its kubelet started comes from an earlier kubelet.
func TestVerify_ReportsKubeletStartTime(t *testing.T) {
	t.Parallel()
	programs := clocktesting.NewFakePassiveClock(time.Now().Add(-time.Hour))
	r := newRig(t, func(o *fake.Options) { o.ProgramClock = programs }).start()
	r.configureHost()
	if line, _ := r.run("verify"); !line.Result.KubeletStarted.Equal(programs.Now()) {
		t.Errorf("it began at %s, told is %s", programs.Now(), line.Result.KubeletStarted)
	}
	programs.SetTime(time.Now().Add(-time.Minute))
	r.must(r.Host().Services.Stop(r.ctx, nodespec.ServiceKubelet))
	if line, _ := r.runStepping("verify"); !line.Result.KubeletStarted.IsZero() { // the checks wait for the kubelet until the timeout
		t.Errorf("a kubelet that does not run is reported to have begun at %s", line.Result.KubeletStarted)
	}
	r.clock = clock.RealClock{}
	r.must(r.Host().Services.Start(r.ctx, nodespec.ServiceKubelet))
	if line, _ := r.run("verify"); !line.Result.KubeletStarted.Equal(programs.Now()) {
		t.Errorf("the next one began at %s, told is %s", programs.Now(), line.Result.KubeletStarted)
	}
	r.clock = ahead{by: -time.Hour}
	if line, _ := r.run("verify"); !line.Result.KubeletStarted.IsZero() {
		t.Errorf("after the clock was set back the kubelet is reported to have begun at %s, later than now", line.Result.KubeletStarted)
	}
}

func TestVerify_FailsIfKubeletStartTimeUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.configureHost()
	checked := false
	r.OnOperation(func(o fake.Operation) error {
		if o.Process.Service != "" {
			return nil
		}
		if o.Interface == "Services" && o.Method == "Query" && strings.EqualFold(o.Target, nodespec.ServiceKubelet) {
			checked = true // the checks query the service, and then its process
		}
		if checked && o.Interface == "Processes" && o.Method == "List" {
			return errors.New("access denied")
		}
		return nil
	})
	if line, _ := r.run("verify"); line.Failure == nil || !strings.Contains(line.Failure.Message, "list processes") {
		t.Errorf("%+v", line)
	}
}
