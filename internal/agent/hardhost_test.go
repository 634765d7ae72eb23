package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// Windows settings of these hosts would prevent the configuration, or disconnect the host during the
// configuration. R-065
func TestApply_HandlesAdverseWindowsSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fake.Options)
		step   string // specific to this host
	}{
		"whose SSH server was started by hand": {
			func(o *fake.Options) { o.SSHStart = host.StartManual }, "SetStartType sshd",
		},
		"whose address is static, on Windows Server 2019": {func(o *fake.Options) {
			o.System, o.StaticAddress = fake.WindowsServer2019(), true
		}, "SetRegistryNumber DeviceLessNicDisabled"},
		"whose address is static, and whose Host Networking Service reads the registry at its start only": {func(o *fake.Options) {
			o.System, o.StaticAddress, o.HNSSettingsReadAtStart = fake.WindowsServer2025(), true, true
		}, "StopService hns"},
		"whose SSH rule is for private networks, and whose parts of Containers are features of their own": {
			func(o *fake.Options) { o.System = fake.WindowsServer2025() }, "EnableFeature Containers-HNS",
		},
		"whose Host Networking Service sleeps": {func(o *fake.Options) {
			o.System, o.HNSStoppedAtBoot = fake.WindowsServer2019(), true
		}, "StartService hns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.change).start()
			steps := r.configureHost()
			if !slices.Contains(steps, c.step) {
				t.Errorf("without the step %s: %v", c.step, steps)
			}
			r.checkReachable()
			if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) > 0 {
				t.Errorf("needs %v, steps\n%s", p.Needs, formatSteps(p))
			}
			boot := r.BootID()
			if line, _ := r.run("reboot", "--boot-id", "boot:"+boot); line.Type != agentapi.TypeRebooting {
				t.Fatalf("%s %v", line.Type, line.Failure)
			}
			r.awaitBoot(boot)
			r.advanceUntil("kube-proxy runs", func() bool { return r.isRunning("kube-proxy") })
			r.checkReachable()
			r.removeNode()
			if diff := cmp.Diff(r.before, r.Snapshot()); diff != "" {
				t.Errorf("the host is not as it was (-before +after):\n%s", diff)
			}
		})
	}
}

// checkReachable checks that the operator can log in to the host.
func (r *rig) checkReachable() {
	r.Helper()
	info, err := r.Host().System.Info(r.ctx)
	r.must(err)
	if !r.IsSSHRunning() || !r.IsPortAllowed(22) || len(info.Addresses) == 0 {
		r.Errorf("the SSH server runs: %t, its port is open: %t, addresses %v", r.IsSSHRunning(), r.IsPortAllowed(22), info.Addresses)
	}
}

func TestReboot_MakesSSHServerStartAtBoot(t *testing.T) {
	t.Parallel()
	r := newNodeRig(t)
	r.must(r.Host().Services.SetStartType(r.ctx, "sshd", host.StartManual))
	boot := r.BootID()
	if line, steps := r.run("reboot", "--boot-id", "boot:"+boot); line.Type != agentapi.TypeRebooting || steps[0] != "SetStartType sshd" {
		t.Fatalf("%s %v, steps %v", line.Type, line.Failure, steps)
	}
	r.awaitBoot(boot)
	r.checkReachable()
	ledger, err := r.Drive().ReadFile(`C:\k\wicd\ledger.json`)
	r.must(err)
	if !strings.Contains(string(ledger), `"sshd": "Manual"`) {
		t.Errorf("the ledger is %s", ledger)
	}
}
