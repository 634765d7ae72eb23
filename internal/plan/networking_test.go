package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

func stepNames(p plan.Plan) []string { return namesOfSteps(p.Steps) }

// newRestartedModel returns the small node's host after its first restart, still without a network.
func newRestartedModel(t *testing.T, change func(*model)) (*model, nodespec.NodeSpec) {
	t.Helper()
	m, spec := newModel(), smallSpec()
	change(m)
	m.Ledger = plan.Record(m.Facts, spec)
	for _, step := range plan.Make(m.Facts, spec).Steps {
		m.applyStep(step)
	}
	spec.Identity.Certificate = nodeCertificate()
	m.subnet, spec.Network.PodSubnet = "10.132.1.0/24", "10.132.1.0/24"
	return m, spec
}

func TestHNS_StaticAddressSettingPrecedesNetwork(t *testing.T) {
	const step = "SetRegistryNumber DeviceLessNicDisabled"
	one, zero := uint32(1), uint32(0)
	for name, c := range map[string]struct {
		version string
		static  bool
		value   *uint32
		want    bool
	}{
		"on Windows Server 2019":                              {"10.0.17763", true, nil, true},
		"on Windows Server 2025":                              {"10.0.26100", true, nil, true},
		"where the registry says otherwise":                   {"10.0.26100", true, &zero, true},
		"not where the registry has it":                       {"10.0.26100", true, &one, false},
		"not on Windows Server 2022, which keeps the address": {"10.0.20348", true, nil, false},
		"not where DHCP gives the address":                    {"10.0.17763", false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, spec := newRestartedModel(t, func(m *model) {
				m.System.Version, m.System.StaticAddress, m.DevicelessDisabled = c.version, c.static, c.value
				m.System.Addresses = []string{"10.0.0.4"}
			})
			steps := stepNames(plan.Make(m.Facts, spec))
			at, overlay := slices.Index(steps, step), slices.Index(steps, "StartService overlay")
			if at >= 0 != c.want || at > overlay || overlay < 0 {
				t.Fatalf("the steps are %v", steps)
			}
			convergeModel(t, m, spec, -1)
			restoreModel(t, m, -1)
			if before, after := c.value, m.DevicelessDisabled; before == nil != (after == nil) || before != nil && *before != *after {
				t.Errorf("after the removal the value is %v", after)
			}
		})
	}
}

// The Host Networking Service may read the value only on start.
func TestHNS_RestartedForStaticAddressSetting(t *testing.T) {
	const stop, set, start = "StopService hns", "SetRegistryNumber DeviceLessNicDisabled", "StartService hns"
	running := map[string]host.Service{"hns": {ServiceConfig: host.ServiceConfig{Name: "hns"}, State: host.ServiceRunning}, "vfpext": {}}
	prepare := func(t *testing.T) (*model, nodespec.NodeSpec) {
		t.Helper()
		m, spec := newRestartedModel(t, func(m *model) {})
		m.System.StaticAddress, m.System.Version, m.System.BootID, m.HNS = true, "10.0.26100", "boot-1", running
		m.Ledger = plan.Record(m.Facts, spec)
		return m, spec
	}
	order := func(t *testing.T, steps []string, want ...string) {
		t.Helper()
		var found []string
		for _, step := range steps {
			if slices.Contains([]string{stop, set, start, "StartService overlay", "Reboot"}, step) {
				found = append(found, step)
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("the steps are %v", steps)
		}
	}
	t.Run("it is restarted where no network exists", func(t *testing.T) {
		m, spec := prepare(t)
		order(t, stepNames(plan.Make(m.Facts, spec)), stop, set, start, "StartService overlay")
	})
	t.Run("it is not where the pods' network exists", func(t *testing.T) {
		m, spec := newConfiguredModel(t)
		m.System.StaticAddress, m.System.Version, m.HNS = true, "10.0.26100", running
		order(t, stepNames(plan.Make(m.Facts, spec)), set)
	})
	t.Run("the host is restarted where other programs have networks", func(t *testing.T) {
		m, spec := prepare(t)
		m.Networks = []host.HNSNetwork{{Name: "nat", Type: "NAT"}}
		p := plan.Make(m.Facts, spec)
		order(t, stepNames(p), set, "Reboot")
		if reason := p.Steps[len(p.Steps)-1].Reason; !strings.Contains(reason, "nat") {
			t.Errorf("the reason is %q", reason)
		}
		one := uint32(1)
		m.DevicelessDisabled = &one
		order(t, stepNames(plan.Make(m.Facts, spec)), "Reboot")
		m.System.BootID += "-next"
		m.Ledger = plan.Record(m.Facts, spec)
		order(t, stepNames(plan.Make(m.Facts, spec)), "StartService overlay")
	})
	t.Run("the agent's service never restarts the host for it", func(t *testing.T) {
		m, spec := prepare(t)
		m.Networks = []host.HNSNetwork{{Name: "nat", Type: "NAT"}}
		p, left := plan.Repair(m.Facts, spec)
		order(t, stepNames(p), set, "StartService overlay")
		if left != "" {
			t.Errorf("left is %q", left)
		}
	})
}

func TestMake_EnablesOnlyKnownOptionalFeatures(t *testing.T) {
	spec := smallSpec()
	spec.OptionalFeatures = []string{"Containers-HNS", "Containers-SDN"}
	m := newModel()
	m.Features["Containers-HNS"], m.Features["Containers-SDN"] = host.FeatureDisabled, host.FeatureUnknown
	steps := stepNames(plan.Make(m.Facts, spec))
	if !slices.Contains(steps, "EnableFeature Containers-HNS") || slices.Contains(steps, "EnableFeature Containers-SDN") {
		t.Errorf("the steps are %v", steps)
	}
	if _, recorded := plan.Record(m.Facts, spec).Features["Containers-SDN"]; recorded {
		t.Error("the ledger has a feature that Windows does not know")
	}
	t.Run("such a feature alone is a reason to restart", func(t *testing.T) {
		m.Features["Containers"], m.Features["Containers-HNS"] = host.FeatureEnabled, host.FeatureEnablePending
		spec.HostName = ""
		if steps := stepNames(plan.Make(m.Facts, spec)); steps[len(steps)-1] != "Reboot" {
			t.Errorf("the steps are %v", steps)
		}
	})
}

func TestHNS_StoppedServiceStartedBeforeNetwork(t *testing.T) {
	const wake = "StartService hns"
	stopped := host.Service{ServiceConfig: host.ServiceConfig{Name: "hns", StartType: host.StartManual}, State: host.ServiceStopped}
	m, spec := newRestartedModel(t, func(m *model) {})
	m.HNS, m.HNSSilent = map[string]host.Service{"hns": stopped, "vfpext": {}}, "it does not answer"
	steps := stepNames(plan.Make(m.Facts, spec))
	if at := slices.Index(steps, wake); at < 0 || at > slices.Index(steps, "StartService overlay") {
		t.Errorf("the steps are %v", steps)
	}
	t.Run("also by the agent's service", func(t *testing.T) {
		p, _ := plan.Repair(m.Facts, spec)
		if !slices.Contains(stepNames(p), wake) {
			t.Errorf("the steps are %v", stepNames(p))
		}
	})
	t.Run("not where the network is there: it may stop by itself", func(t *testing.T) {
		m, spec := newConfiguredModel(t)
		m.HNS = map[string]host.Service{"hns": stopped}
		if steps := stepNames(plan.Make(m.Facts, spec)); slices.Contains(steps, wake) {
			t.Errorf("the steps are %v", steps)
		}
	})
	t.Run("a removal fails with its silence, and takes no networks for gone", func(t *testing.T) {
		m, _ := newConfiguredModel(t)
		m.HNS, m.HNSSilent, m.Networks = map[string]host.Service{"hns": stopped}, "it does not answer", nil
		for range 2 {
			p := plan.Remove(m.Facts)
			if steps := stepNames(p); slices.Contains(steps, "DeleteNetwork OVN") && slices.Index(steps, wake) < slices.Index(steps, "DeleteNetwork OVN") {
				return
			}
			for _, step := range p.Steps {
				m.applyStep(step)
			}
		}
		t.Errorf("the steps are %v", stepNames(plan.Remove(m.Facts)))
	})
	t.Run("a missing service is named where the network is waited for", func(t *testing.T) {
		m.HNS = map[string]host.Service{"hns": {State: host.ServiceRunning}}
		for _, step := range plan.Make(m.Facts, spec).Steps {
			if await, ok := step.Operation.(plan.AwaitNetwork); ok {
				if !strings.Contains(await.Lacks, "no service vfpext") || !strings.Contains(await.Lacks, "Containers") {
					t.Errorf("it says %q", await.Lacks)
				}
				return
			}
		}
		t.Error("nobody waits for the network")
	})
}

func TestFirewall_SSHRuleDeletedLast(t *testing.T) {
	m, spec := newModel(), smallSpec()
	rule := host.FirewallRule{Name: nodespec.RuleSSH, DisplayName: nodespec.RuleSSH, Protocol: "TCP", LocalPort: 22, Enabled: true, Allow: true}
	spec.Firewall = append(spec.Firewall, rule)
	m.Ledger = plan.Record(m.Facts, spec)
	steps := stepNames(plan.Make(m.Facts, spec))
	if at := slices.Index(steps, "SetFirewallRule "+nodespec.RuleSSH); at < 0 || at > slices.Index(steps, "Reboot") {
		t.Errorf("the steps are %v", steps)
	}
	convergeModel(t, m, spec, -1)
	if steps := stepNames(plan.Commit(m.Facts, smallSpec())); slices.Contains(steps, "DeleteFirewallRule "+nodespec.RuleSSH) {
		t.Errorf("a spec of another release takes it away: %v", steps)
	}
	steps = namesOfSteps(restoreModel(t, m, -1))
	if steps[len(steps)-1] != "DeleteFirewallRule "+nodespec.RuleSSH {
		t.Errorf("the steps are %v", steps)
	}
	if _, exists := m.Firewall[nodespec.RuleSSH]; exists {
		t.Error("it is still there after the removal")
	}
}
