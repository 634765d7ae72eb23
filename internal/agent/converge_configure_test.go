package agent_test

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestApply_FirstConfigurationRestartsOnce(t *testing.T) {
	r := newRig(t).start()
	steps := r.configureHost()

	t.Run("restarts the host once, and only for features and host name", func(t *testing.T) {
		if n := r.Journal().Count(fake.KindReboot); n != 1 {
			t.Errorf("%d restarts", n)
		}
		if r.Name() != "node-a" {
			t.Errorf("the host is named %s", r.Name())
		}
	})
	t.Run("has the certificate request out before the restart", func(t *testing.T) {
		if slices.Index(steps, "RequestCertificate system:node:node-a") > slices.Index(steps, "Reboot") {
			t.Error(steps)
		}
	})
	t.Run("leaves nothing to do", func(t *testing.T) {
		if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
			t.Errorf("needs %v, steps\n%s", p.Needs, formatSteps(p))
		}
	})
	t.Run("runs every service from its release", func(t *testing.T) {
		for _, want := range r.fullSpec().Services {
			service, _ := r.Service(want.Name)
			if service.State != host.ServiceRunning || service.RunningCommandLine != want.CommandLine {
				t.Errorf("%s: %s %s", want.Name, service.State, service.RunningCommandLine)
			}
		}
	})
	t.Run("passes its checks", func(t *testing.T) {
		line, _ := r.run("verify")
		for _, check := range line.Result.Checks {
			if !check.Passed && !check.Advisory {
				t.Errorf("%s: %s", check.Name, check.Message)
			}
		}
	})
	t.Run("lays the certificate out as client-go's store does", func(t *testing.T) {
		info, err := r.Drive().Stat(pki + `\kubelet-client-current.pem`)
		r.must(err)
		if !strings.HasPrefix(info.LinkTarget, pki+`\kubelet-client-2`) {
			t.Errorf("it leads to %q", info.LinkTarget)
		}
		data, err := r.Drive().ReadFile(pki + `\kubelet-client-current.pem`)
		r.must(err)
		if _, err := tls.X509KeyPair(data, data); err != nil {
			t.Error(err)
		}
		file, err := r.Drive().Stat(info.LinkTarget)
		r.must(err)
		if file.Access != host.AccessAdministrators {
			t.Errorf("others may read the key: %s", file.Access)
		}
	})
	t.Run("keeps its inputs no longer than needed", func(t *testing.T) {
		// The plan above left a spec in the inbox; the next apply removes the spec.
		r.apply(r.fullSpec())
		if left, _ := r.Drive().ReadDir(nodespec.InboxRoot); len(left) != 0 {
			t.Errorf("%d files", len(left))
		}
	})
	t.Run("does nothing when it is asked again", func(t *testing.T) {
		args := r.sendSpec(r.fullSpec())
		writes := r.Journal().Count(fake.KindService)
		line, steps := r.run(append([]string{"apply"}, args...)...)
		if len(steps) != 0 || r.Journal().Count(fake.KindService) != writes {
			t.Error(steps)
		}
		if line.Result.Facts.Applied != r.fullSpec().Digest() {
			t.Error("it does not say that the spec was applied")
		}
	})
}

func TestApply_ResultHasNoSecrets(t *testing.T) {
	r := newRig(t, withForeignObjects).start()
	line, _ := r.apply(newSpec(nil))
	if line.Type != agentapi.TypeRebooting {
		t.Fatalf("%s %v", line.Type, line.Failure)
	}
	if before := line.Result.Facts.Ledger.Paths[`C:\k\kubelet.conf`]; !before.Existed || before.Content != nil {
		t.Errorf("what was in files before us is sent around: %+v", before)
	}
	data, err := line.Encode()
	r.must(err)
	if strings.Contains(string(data), "PRIVATE") {
		t.Error(string(data))
	}
}
