package plan_test

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

//
func TestRemove_MountedLayersAwaitOneRestart(t *testing.T) {
	data := nodespec.ContainerdData
	ledger := plan.Ledger{Removing: true, Paths: map[string]plan.PathBefore{data: {}}}
	facts := func(boot string, ledger plan.Ledger) plan.Facts {
		return plan.Facts{System: host.SystemInfo{BootID: boot}, Ledger: ledger, Files: map[string]plan.FileFact{data: {Directory: true}}}
	}
	held, waits := ledger.RecordInUse(data, "boot 1")
	if !waits || ledger.InUse != nil {
		t.Fatalf("waits: %v, and the ledger from before is %v", waits, ledger.InUse)
	}
	for _, test := range []struct {
		name, boot string
		want       []string
	}{
		{"in the same boot, the restart is all that is left", "boot 1", []string{"Reboot"}},
		{"after it, the folder is removed", "boot 2", []string{"RemovePath " + data}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, step := range plan.Remove(facts(test.boot, held)).Steps {
				got = append(got, step.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("steps %q, want %q", got, test.want)
			}
		})
	}
	t.Run("a restart in vain is not repeated", func(t *testing.T) {
		if _, waits := held.RecordInUse(data, "boot 2"); waits {
			t.Error("it waits for another")
		}
	})
	t.Run("other folders wait for none", func(t *testing.T) {
		if _, waits := ledger.RecordInUse(`C:\k\releases`, "boot 1"); waits {
			t.Error("it waits")
		}
	})
	t.Run("a host that stays waits for none", func(t *testing.T) {
		if _, waits := (plan.Ledger{}).RecordInUse(data, "boot 1"); waits {
			t.Error("it waits")
		}
	})
}
