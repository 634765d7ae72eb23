package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// A secret file is restricted to administrators from its first byte on, and no output of the agent contains a
// secret, even after failed operations. Rule 8.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	const path = `C:\k\config.json`
	private := func() bool {
		info, err := r.Drive().Stat(path)
		return err == nil && info.Access == host.AccessAdministrators
	}
	t.Run("only administrators may read it", func(t *testing.T) {
		if data, err := r.Drive().ReadFile(path); err != nil || string(data) != "credentials canary\n" || !private() {
			t.Errorf("%q, for administrators only: %t (%v)", data, private(), err)
		}
	})
	t.Run("one that others may read is written anew", func(t *testing.T) {
		r.must(r.Drive().Remove(path))
		r.must(r.Drive().WriteFile(path, []byte("credentials canary\r\n")))
		if steps := r.mustApply(r.fullSpec()); !slices.Equal(steps, []string{"WriteFile " + path}) || !private() {
			t.Errorf("steps %q, for administrators only: %t", steps, private())
		}
	})
	t.Run("no answer, log or event has it", func(t *testing.T) {
		spec := r.fullSpec()
		spec.Services[1].Environment = []string{"HTTPS_PROXY=http://user:canary@proxy.example:3128"}
		for i := range spec.Files {
			if spec.Files[i].Path == path {
				spec.Files[i].Secret = "other canary\n"
			}
		}
		args := append([]string{"apply"}, r.sendSpec(spec)...)
		var output, kept strings.Builder
		for _, failing := range []string{"Files.Write", "Services.Configure", ""} {
			remove := r.OnOperation(func(o fake.Operation) error {
				if o.Interface+"."+o.Method == failing && strings.HasSuffix(o.Process.Path, nodespec.AgentProgram) && (o.Target == path || o.Target == "kubelet") {
					return errors.New("the test does not let it")
				}
				return nil
			})
			r.must(r.Drive().WriteFile(args[2], mustEncode(t, spec)))
			_, err := r.Exec(r.ctx, fake.ExecRequest{Path: r.uploadAgent(), Args: args, Stdout: &output, Stderr: &output})
			r.must(err)
			remove()
			lines, err := r.Drive().ReadFile(nodespec.LastRunPath("apply"))
			r.must(err)
			kept.Write(lines)
		}
		if !strings.Contains(kept.String(), `WriteFile C:\\k\\config.json`) {
			t.Errorf("of the verbs %s is kept", kept.String())
		}
		r.must(r.Drive().WriteFile(path, []byte("drift")))
		text := output.String() + kept.String()
		for _, event := range r.Events() {
			text += event.Message
		}
		r.restartAgent(func() {})
		if text += r.readLog(); strings.Contains(text, "canary") || !strings.Contains(text, `WriteFile C:\\k\\config.json`) {
			t.Errorf("the secret is logged, or the test does not see the log:\n%s", text)
		}
		for _, entry := range r.Journal().Entries(nil) {
			if strings.Contains(entry.Detail, "canary") {
				t.Errorf("a command line or name has it: %s", entry.Detail)
			}
		}
	})
}

func mustEncode(t *testing.T, spec nodespec.NodeSpec) []byte {
	t.Helper()
	data, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
