package agent_test

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// With a NodeSpec that is not completely known, an agent runs only safe commands, and reports why other
// commands are refused.
func TestSpec_OtherReleaseAllowsSafeCommandsOnly(t *testing.T) {
	t.Parallel()
	change := func(name string, value any) func(map[string]any) {
		return func(spec map[string]any) { spec["schema"], spec[name] = 7, value }
	}
	for name, c := range map[string]struct {
		change  func(map[string]any)
		verb    []string
		message string // empty if the command succeeds
	}{
		"a later one is no matter for a renewal":    {change("more", 1), []string{"renew", "--identity", cloud.Name}, ""},
		"a later one proves nothing":                {change("more", 1), []string{"verify"}, "a later agent must verify the node"},
		"one whose identities have another form":    {change("identities", "all"), []string{"renew", "--identity", cloud.Name}, " not found: the NodeSpec has schema version"},
		"one whose identities have another name":    {change("identities", nil), []string{"renew", "--identity", cloud.Name}, " not found: the NodeSpec has schema version"},
		"an earlier one without checks":             {func(spec map[string]any) { spec["schema"] = 0; delete(spec, "checks") }, []string{"verify"}, "no checks"},
		"an earlier one whose checks are different": {func(spec map[string]any) { spec["schema"], spec["checks"] = 0, "all" }, []string{"verify"}, "checks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := leftBy(t, "12.0", "azure", func(spec, _ map[string]any) { c.change(spec) })
			line, _ := h.run(c.verb...)
			if c.message != "" {
				h.checkFailure(line, agentapi.ReasonSpecNotFound, c.message)
			} else if line.Type != agentapi.TypeResult {
				t.Errorf("%s %v", line.Type, line.Failure)
			}
		})
	}
}

// If a NodeSpec cannot be kept for a rollback, the agent reports that before the host is changed. The command
// that does not keep the NodeSpec reports that too.
func TestRollbackTarget_ReportsReasonIfNotKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mutate  func(h *formerHost)
		message string
	}{
		"the NodeSpec was changed by somebody else": {func(h *formerHost) {
			h.must(h.Drive().WriteFile(nodespec.SpecPath, []byte(`{"schema":0}`)))
		}, "is not the last completely applied NodeSpec"},
		"the agent that understands it is gone": {func(h *formerHost) {
			h.must(h.Host().Services.Stop(h.ctx, nodespec.ServiceAgent))
			h.must(h.Drive().RemoveAll(agentDirectory(agentProgram)))
		}, "the agent that applied the rollback target is no longer on the host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := leftBy(t, "12.0", "none", forms["with another schema version"])
			c.mutate(h)
			if facts := h.readFacts(t); !strings.Contains(facts.NoRollbackReason, c.message) {
				t.Errorf("facts say %q", facts.NoRollbackReason)
			}
			result := h.upgradeTo(h.nextSpec())
			if !strings.Contains(result.NoRollbackReason, c.message) || result.Facts.RollbackTarget != "" {
				t.Errorf("fallback %q, %q", result.Facts.RollbackTarget, result.NoRollbackReason)
			}
		})
	}
}

// An agent does not roll back to a NodeSpec that it may misinterpret.
func TestRollback_UnknownSchemaLeftToFormerAgent(t *testing.T) {
	t.Parallel()
	h := leftBy(t, "12.0", "none", forms["with another schema version"])
	h.upgradeTo(h.nextSpec())
	before := withoutChance(h.Snapshot())
	line, _ := h.run("rollback")
	h.checkFailure(line, agentapi.ReasonSpecNotFound, nodespec.AgentPath(hexDigest(agentProgram)))
	compareSnapshots(t, before, withoutChance(h.Snapshot()))
}
