package fake_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// bootWithContainers returns a machine with all container features enabled.
func bootWithContainers(t *testing.T, options fake.Options) *fake.Machine {
	t.Helper()
	options.Features = map[string]host.FeatureState{"Containers": host.FeatureEnabled}
	if options.System.Version == fake.WindowsServer2025().Version {
		options.Features["Containers-HNS"], options.Features["Containers-SDN"] = host.FeatureEnabled, host.FeatureEnabled
	}
	m := fake.New(options)
	t.Cleanup(m.Close)
	if err := m.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

var overlay = host.HNSNetwork{Name: "n", Type: "Overlay", Subnet: "10.132.1.0/24"}

func TestNetwork_MachineNetworkBecomesPublic(t *testing.T) {
	ssh := host.FirewallRule{Name: "ssh", DisplayName: "ssh", Protocol: "TCP", LocalPort: 22, Enabled: true, Allow: true}
	for name, c := range map[string]struct {
		system   host.SystemInfo
		own, out bool
		policy   fake.GroupPolicy
	}{
		"Windows Server 2025, whose rule is for private networks": {system: fake.WindowsServer2025(), out: true},
		"with a rule for all networks":                            {system: fake.WindowsServer2025(), own: true},
		"Windows Server 2022, whose rule is for all":              {system: fake.WindowsServer2022()},
		"with rules of its own, which a group policy excludes in public networks": {
			system: fake.WindowsServer2022(), own: true, out: true,
			policy: fake.GroupPolicy{Void: []host.FirewallProfiles{host.ProfilePublic}},
		},
		"with a rule of a group policy for all networks": {
			system: fake.WindowsServer2022(),
			policy: fake.GroupPolicy{Void: host.Profiles(), Rules: []host.FirewallRule{ssh}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := bootWithContainers(t, fake.Options{System: c.system, Addresses: []string{"10.0.0.4"}, GroupPolicy: c.policy})
			if c.own {
				if err := m.Host().Firewall.SetRule(t.Context(), ssh); err != nil {
					t.Fatal(err)
				}
			}
			if !m.IsPortAllowed(22) {
				t.Fatal("SSH is closed before there is a network")
			}
			if err := m.CreateNetwork(overlay); err != nil {
				t.Fatal(err)
			}
			if m.IsPortAllowed(22) == c.out {
				t.Errorf("SSH is open: %t", !c.out)
			}
		})
	}
}

func TestNetwork_RemovesStaticAddress(t *testing.T) {
	for name, c := range map[string]struct {
		system        host.SystemInfo
		static, value bool
		loses         bool
	}{
		"on Windows Server 2019":               {fake.WindowsServer2019(), true, false, true},
		"on Windows Server 2025":               {fake.WindowsServer2025(), true, false, true},
		"not on Windows Server 2022":           {fake.WindowsServer2022(), true, false, false},
		"not with the value in the registry":   {fake.WindowsServer2019(), true, true, false},
		"not where DHCP has given the address": {fake.WindowsServer2019(), false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := bootWithContainers(t, fake.Options{System: c.system, StaticAddress: c.static, Addresses: []string{"10.0.0.4"}})
			if c.value {
				at := host.RegistryName{Key: `SYSTEM\CurrentControlSet\Services\hns\State`, Name: "DeviceLessNicDisabled"}
				if err := m.Host().Registry.SetNumber(t.Context(), at, 1); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.CreateNetwork(overlay); err != nil {
				t.Fatal(err)
			}
			info, err := m.Host().System.Info(t.Context())
			if err != nil || (len(info.Addresses) == 0) != c.loses || m.IsPortAllowed(22) && c.loses {
				t.Errorf("its addresses are %v, SSH is open: %t, error %v", info.Addresses, m.IsPortAllowed(22), err)
			}
		})
	}
}

func TestHNS_InstalledByFeatures(t *testing.T) {
	t.Run("on Windows Server 2025 with one of its own", func(t *testing.T) {
		m := fake.New(fake.Options{System: fake.WindowsServer2025(), Features: map[string]host.FeatureState{"Containers": host.FeatureEnabled}})
		t.Cleanup(m.Close)
		if err := m.Boot(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, exists := m.Service("hns"); exists || m.CreateNetwork(overlay) == nil {
			t.Error("it is there without")
		}
	})
	t.Run("one that sleeps answers when its service is started", func(t *testing.T) {
		m := bootWithContainers(t, fake.Options{System: fake.WindowsServer2019(), HNSStoppedAtBoot: true})
		if _, err := m.Host().Networks.Networks(t.Context()); err == nil || !strings.Contains(err.Error(), "Stopped") {
			t.Errorf("got error %v", err)
		}
		if err := m.Host().Services.Start(t.Context(), "hns"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Host().Networks.Networks(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSSHServer_ManualStartNotRunningAfterReboot(t *testing.T) {
	m := fake.New(fake.Options{SSHStart: host.StartManual})
	t.Cleanup(m.Close)
	if err := m.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !m.IsSSHRunning() {
		t.Fatal("it does not run at first")
	}
	m.PowerOff()
	if err := m.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.IsSSHRunning() {
		t.Error("it runs after a restart")
	}
}

func TestSetHostName_DomainMemberRejected(t *testing.T) {
	m := fake.New(fake.Options{Name: "WIN-1", DomainMember: true})
	t.Cleanup(m.Close)
	if err := m.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Host().System.SetHostName(t.Context(), "winworker-1"); !errors.Is(err, host.ErrDomainMember) {
		t.Errorf("got error %v", err)
	}
}
