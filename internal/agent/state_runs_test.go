package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// lastRuns returns the last runs of commands reported by collect.
func (r *rig) lastRuns() map[agentapi.Name][]agentapi.Line {
	r.Helper()
	line, _ := r.run("collect")
	if line.Type != agentapi.TypeResult {
		r.Fatalf("%+v", line)
	}
	runs := map[agentapi.Name][]agentapi.Line{}
	for _, run := range line.Result.Collected.Runs {
		runs[run.Command] = run.Lines
	}
	return runs
}

func TestCollect_ReportsLastRunsOfCommands(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	if line, _ := r.run("verify"); line.Type != agentapi.TypeResult {
		t.Fatalf("%+v", line)
	}
	defer r.OnOperation(func(o fake.Operation) error {
		if o.Interface+"."+o.Method == "Services.Start" && o.Target == "kubelet" {
			return errors.New("the test does not let it")
		}
		return nil
	})()
	r.must(r.Host().Services.Stop(r.ctx, "kubelet"))
	spec := r.fullSpec()
	r.run(append([]string{"apply"}, r.sendSpec(spec)...)...)
	runs := r.lastRuns()
	if len(runs) != 2 {
		t.Errorf("it tells of %d verbs", len(runs))
	}
	applied := runs[agentapi.Apply]
	last := applied[len(applied)-1]
	if applied[0].Hello == nil || applied[0].Hello.Command != agentapi.Apply || last.Failure == nil || !strings.Contains(last.Failure.Message, "the test does not let it") {
		t.Errorf("apply has said %+v", applied)
	}
	verified := runs[agentapi.Verify]
	if last := verified[len(verified)-1]; last.Result == nil || len(last.Result.Checks) == 0 || last.Result.Facts != nil {
		t.Errorf("verify has said %+v", last)
	}
}

func TestCollect_OmitsTruncatedLine(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	r.must(r.Drive().WriteFile(nodespec.LastRunPath("remove"), []byte(`{"wicd":"v1","type":"hello","hello":{"verb":"remove"}}`+"\n"+`{"wicd":"v1","ty`)))
	if lines := r.lastRuns()[agentapi.Remove]; len(lines) != 1 || lines[0].Hello == nil {
		t.Errorf("it tells %+v", lines)
	}
}

func TestCollect_ReportsEventsAlone(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	r.must(r.Host().EventLog.Report(t.Context(), host.Event{Source: "kubelet", Level: host.EventError, ID: 3, Message: "it does not start"}))
	line, _ := r.run("collect", "--events", "last:1h")
	if line.Type != agentapi.TypeResult || line.Result.Facts.System.HostName == "" {
		t.Fatalf("%+v", line)
	}
	found := line.Result.Collected
	if len(found.Events) == 0 || found.Events[0].Message != "it does not start" || len(found.Services)+len(found.Processes)+len(found.Runs) > 0 {
		t.Errorf("it has found %+v", found)
	}
	for _, word := range []string{"1h", "last:", "last:-1h", "last:soon"} {
		if line, _ := r.run("collect", "--events", word); line.Failure == nil || line.Failure.Reason != agentapi.ReasonInvalidInput {
			t.Errorf("%s: %+v", word, line)
		}
	}
}
