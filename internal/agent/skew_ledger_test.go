package agent_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// An agent that is older than the ledger preserves unknown fields.
func TestLedger_FieldsOfLaterReleasePreserved(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	tasks := map[string]any{"backup": map[string]any{"existed": true, "definition": "<Task/>"}}
	read := func() map[string]any {
		t.Helper()
		data, err := r.Drive().ReadFile(nodespec.LedgerPath)
		r.must(err)
		var ledger map[string]any
		r.must(json.Unmarshal(data, &ledger))
		return ledger
	}
	data, err := r.Drive().ReadFile(nodespec.LedgerPath)
	r.must(err)
	r.must(r.Drive().WriteFile(nodespec.LedgerPath, alterDocument(t, data, func(ledger map[string]any) {
		ledger["scheduledTasks"] = tasks
		ledger["paths"].(map[string]any)[`C:\k\kubelet.conf`].(map[string]any)["owner"] = "backup"
		ledger["exclusions"].([]any)[0].(map[string]any)["since"] = "2027"
	})))
	holds := func(t *testing.T) {
		t.Helper()
		ledger := read()
		kept, _ := json.Marshal(ledger["scheduledTasks"])
		want, _ := json.Marshal(tasks)
		if !bytes.Equal(kept, want) {
			t.Errorf("the entries are %s", kept)
		}
		if path := ledger["paths"].(map[string]any)[`C:\k\kubelet.conf`].(map[string]any); path["owner"] != "backup" {
			t.Errorf("the path is %v", path)
		}
		if first := ledger["exclusions"].([]any)[0].(map[string]any); first["since"] != "2027" {
			t.Errorf("the exclusion is %v", first)
		}
	}
	t.Run("through an upgrade and a rollback", func(t *testing.T) {
		former := r.fullSpec()
		own := r.program
		r.mustResult(r.applyUpgrade(r.nextSpec(), former))
		holds(t)
		r.program, r.versions = own, nil
		r.mustResult(r.run("rollback"))
		holds(t)
		if _, exists := read()["environment"].(map[string]any)["NO_PROXY"]; exists {
			t.Error("an entry that was restored is still there")
		}
	})
	t.Run("a removal says what it cannot restore", func(t *testing.T) {
		boot := r.BootID()
		line, _ := r.run("remove")
		if line.Type == agentapi.TypeRebooting {
			r.awaitBoot(boot)
			line, _ = r.run("remove")
		}
		want := []string{"exclusions[0].since", `paths.C:\k\kubelet.conf.owner`, "scheduledTasks"}
		if line.Result == nil || !line.Result.Removed || !slices.Equal(line.Result.NotRestored, want) {
			t.Errorf("%s %v %+v", line.Type, line.Failure, line.Result)
		}
		if !slices.Contains(slices.Collect(maps.Keys(read())), "scheduledTasks") {
			t.Error("the ledger has lost it")
		}
	})
}
