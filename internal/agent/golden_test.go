package agent_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recordOutput returns the lines of a command, without variable parts and without most of the facts.
func (r *rig) recordOutput(args ...string) string {
	r.Helper()
	var out, errs bytes.Buffer
	boot := r.BootID()
	_, err := r.Exec(r.ctx, fake.ExecRequest{Path: r.uploadAgent(), Args: args, Stdout: &out, Stderr: &errs})
	if err != nil && !strings.Contains(err.Error(), fake.ErrProcessEnded.Error()) {
		r.Fatal(err)
	}
	transcript := "$ wicd " + strings.ReplaceAll(strings.Join(args, " "), boot, "BOOT") + "\n"
	for _, text := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		line, ok := agentapi.Decode([]byte(text))
		if !ok {
			r.Fatalf("noise: %s", text)
		}
		if line.Step != nil && (line.Step.State != agentapi.StepStarted || line.Step.Index > 1) {
			continue // equal for all commands
		}
		var fields map[string]any
		r.must(json.Unmarshal([]byte(text), &fields))
		fields["time"] = "TIME"
		if hello, ok := fields["hello"].(map[string]any); ok {
			hello["bootID"], hello["pid"] = "BOOT", 1
		}
		if result, ok := fields["result"].(map[string]any); ok && result["facts"] != nil {
			facts, some := result["facts"].(map[string]any), map[string]any{}
			for _, name := range []string{"applied", "fallback", "kept"} {
				if facts[name] != nil {
					some[name] = facts[name]
				}
			}
			result["facts"] = some
		}
		data, err := json.Marshal(fields)
		r.must(err)
		transcript += string(data) + "\n"
	}
	return transcript
}

// The output of the upgrade commands is part of the contract between two releases.
func TestGolden_UpgradeCommandOutput(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	former := r.fullSpec()
	transcript := r.recordOutput("rollback") + r.recordOutput("commit")
	next := r.nextSpec()
	r.mustResult(r.applyUpgrade(next, former))
	transcript += r.recordOutput("rollback", "--digest", "sha256:"+former.Digest())
	transcript += r.recordOutput("rollback", "--digest", "sha256:"+former.Digest())
	r.mustResult(r.applyUpgrade(next, former))
	transcript += r.recordOutput("commit")
	boot := r.BootID()
	transcript += r.recordOutput("reboot", "--boot-id", "boot:"+boot)
	r.awaitBoot(boot)
	transcript += strings.ReplaceAll(r.recordOutput("reboot", "--boot-id", "boot:"+boot), boot, "FORMER-BOOT")
	transcript += r.recordOutput("reboot")

	path := filepath.Join("testdata", "upgrade.golden")
	if *update {
		r.must(os.MkdirAll("testdata", 0o755))
		r.must(os.WriteFile(path, []byte(transcript), 0o644))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; `go test ./internal/agent -update` writes it", err)
	}
	if transcript != string(want) {
		t.Errorf("%s differs; if that is meant, run `go test ./internal/agent -update` and read the difference. Got:\n%s", path, transcript)
	}
}
