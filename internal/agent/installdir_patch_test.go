package agent_test

import (
	"bytes"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestPatch_CreatesNextAgent(t *testing.T) {
	t.Parallel()
	successor := []byte("another version of the agent")
	patch := func(r *rig, content []byte) agentapi.Line {
		r.Helper()
		path := nodespec.InboxPatch(hexDigest(content))
		r.must(r.Drive().WriteFile(path, content))
		line, _ := r.runFrom(nodespec.AgentPath(hexDigest(r.program)), "patch", "--patch", path)
		if _, err := r.Drive().Stat(path); err == nil {
			r.Error("the patch is still there")
		}
		return line
	}
	landed := func(t *testing.T) *rig {
		t.Helper()
		r := newRig(t).start()
		if line := r.runLanded("facts"); line.Result == nil {
			t.Fatalf("%+v", line.Failure)
		}
		return r
	}
	t.Run("in a folder that only administrators can use, beside itself", func(t *testing.T) {
		t.Parallel()
		r := landed(t)
		if line := patch(r, patchOf(t, r.program, successor)); line.Type != agentapi.TypeResult {
			t.Fatalf("%s %+v", line.Type, line.Failure)
		}
		if program, err := r.Drive().ReadFile(nodespec.AgentPath(hexDigest(successor))); err != nil || !bytes.Equal(program, successor) {
			t.Errorf("%q, %v", program, err)
		}
		r.expectClosed(nodespec.AgentPath(hexDigest(successor)))
		r.expectOwnProgram()
	})
	patchData := patchOf(t, []byte("the program of another host"), successor)
	for name, content := range map[string]func(*rig) []byte{
		"not of one that was made for another program": func(*rig) []byte { return patchData },
		"not of one that was cut":                      func(r *rig) []byte { p := patchOf(r.T, r.program, successor); return p[:len(p)-3] },
		"not of one that was changed": func(r *rig) []byte {
			p := patchOf(r.T, r.program, successor)
			p[50]++ // in the digest of the successor
			return p
		},
		"not of anything else": func(*rig) []byte { return successor },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := landed(t)
			if line := patch(r, content(r)); line.Type != agentapi.TypeFailure || line.Failure.Reason != agentapi.ReasonPayloadCorrupted {
				t.Fatalf("%s %+v", line.Type, line.Failure)
			}
			entries, err := r.Drive().ReadDir(nodespec.AgentRoot)
			r.must(err)
			for _, entry := range entries {
				if _, err := r.Drive().Stat(entry.Path + `\` + nodespec.AgentProgram); err == nil && entry.Path+`\`+nodespec.AgentProgram != nodespec.AgentPath(hexDigest(r.program)) {
					t.Errorf("%s was made", entry.Path)
				}
			}
			r.expectOwnProgram()
		})
	}
}
