package hosttest

import (
	"context"
	"net/netip"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

func systemBehaviors() []Behavior {
	return []Behavior{
		{"System.Info", "the machine says which Windows it is", func(s *suite) {
			info := s.systemInfo()
			expectEqual(s, "product begins with Windows Server", strings.HasPrefix(info.Product, "Windows Server "), true)
			expectEqual(s, "edition begins with Server", strings.HasPrefix(info.Edition, "Server"), true)
			expectEqual(s, "version begins with 10.0.", strings.HasPrefix(info.Version, "10.0."), true)
			expectEqual(s, "parts of the version", strings.Count(info.Version, ".")+1, 3)
			expectEqual(s, "has a revision", info.Revision > 0, true)
			expectEqual(s, "architecture", info.Architecture, "amd64")
		}},
		{"System.Info", "the machine has an identity, which a second question does not change", func(s *suite) {
			info, again := s.systemInfo(), s.systemInfo()
			expectEqual(s, "has a machine ID", info.MachineID != "", true)
			expectEqual(s, "machine ID", again.MachineID, info.MachineID)
			expectEqual(s, "has a boot ID", info.BootID != "", true)
			expectEqual(s, "boot ID", again.BootID, info.BootID)
			expectEqual(s, "has booted", info.BootTime.IsZero(), false)
			expectEqual(s, "boot time", again.BootTime.Equal(info.BootTime), true)
		}},
		{"System.Info", "the machine has a name and IPv4 addresses that others can reach", func(s *suite) {
			info := s.systemInfo()
			expectEqual(s, "has a host name", info.HostName != "", true)
			expectEqual(s, "has addresses", len(info.Addresses) > 0, true)
			for _, address := range info.Addresses {
				parsed, err := netip.ParseAddr(address)
				if err != nil || !parsed.Is4() || parsed.IsLoopback() || parsed.IsUnspecified() {
					s.Errorf("address %q: %v", address, err)
				}
			}
		}},
		{"System.Info", "the machine has memory and room on its disk", func(s *suite) {
			info := s.systemInfo()
			expectEqual(s, "memory", info.MemoryBytes > 64<<20, true)
			expectEqual(s, "free disk", info.FreeDiskBytes > 1<<20, true)
		}},
	}
}

func hostNameBehaviors() []Behavior {
	const name = "wmco-contract"
	return []Behavior{
		{"System.SetHostName", "a new name waits for the next reboot, and the present one calls it off", func(s *suite) {
			before := s.systemInfo()
			if before.PendingHostName != "" {
				s.skipBehavior("the name %s waits for a reboot already", before.PendingHostName)
			}
			s.atEnd(s.restoreName(before.HostName))
			s.requireNoError(s.System.SetHostName(s.ctx, name))
			pending := s.systemInfo()
			expectEqual(s, "host name", pending.HostName, before.HostName)
			expectEqual(s, "pending host name", strings.ToLower(pending.PendingHostName), name)
			expectEqual(s, "reboot pending", pending.RebootPending, true)
			s.requireNoError(s.System.SetHostName(s.ctx, before.HostName))
			after := s.systemInfo()
			expectEqual(s, "pending host name, called off", after.PendingHostName, "")
			expectEqual(s, "reboot pending, called off", after.RebootPending, before.RebootPending)
		}},
		{"System.SetHostName", "names that Windows does not allow are refused", func(s *suite) {
			before := s.systemInfo()
			s.atEnd(s.restoreName(before.HostName))
			for _, bad := range []string{"", "a b", "a.b", `a\b`, "-a", "a-", "12345", strings.Repeat("a", 64)} {
				s.expectAnyError("the name "+bad, s.System.SetHostName(s.ctx, bad))
			}
			expectEqual(s, "pending host name", s.systemInfo().PendingHostName, before.PendingHostName)
		}},
	}
}

func featureBehaviors() []Behavior {
	const unknown = "wmco-contract-feature"
	return []Behavior{
		{"Features.State", "a feature that Windows does not have is unknown", func(s *suite) {
			expectEqual(s, "state", s.featureState(unknown), host.FeatureUnknown)
		}},
		{"Features.State", "the feature for containers is known, whatever the case of its name", func(s *suite) {
			state := s.featureState("Containers")
			expectEqual(s, "known", state != host.FeatureUnknown, true)
			expectEqual(s, "state", s.featureState("containers"), state)
		}},
		{"Features.Enable", "a feature that needs no reboot is enabled at once, and twice is no error", func(s *suite) {
			s.borrowFeature()
			for range 2 {
				s.requireNoError(s.Features.Enable(s.ctx, quickFeature))
				expectEqual(s, "state", s.featureState(quickFeature), host.FeatureEnabled)
			}
		}},
		{"Features.Disable", "a feature that needs no reboot is disabled at once, and twice is no error", func(s *suite) {
			s.borrowFeature()
			s.requireNoError(s.Features.Enable(s.ctx, quickFeature))
			for range 2 {
				s.requireNoError(s.Features.Disable(s.ctx, quickFeature))
				expectEqual(s, "state", s.featureState(quickFeature), host.FeatureDisabled)
			}
		}},
		{"Features.Enable", "a feature that Windows does not have cannot be enabled", func(s *suite) {
			s.requireError(s.Features.Enable(s.ctx, unknown), host.ErrNotExist)
		}},
		{"Features.Disable", "a feature that Windows does not have cannot be disabled", func(s *suite) {
			s.requireError(s.Features.Disable(s.ctx, unknown), host.ErrNotExist)
		}},
	}
}

// quickFeature is an optional feature of every Windows Server that starts nothing and needs no reboot.
const quickFeature = "TelnetClient"

func (s *suite) featureState(name string) host.FeatureState {
	state, err := s.Features.State(s.ctx, name)
	s.requireNoError(err)
	return state
}

// borrowFeature disables quickFeature at the end of the behavior. If the feature is already in use, the behavior does
// not run.
func (s *suite) borrowFeature() {
	if state := s.featureState(quickFeature); state != host.FeatureDisabled {
		s.skipBehavior("the feature %s is %s, and somebody may use it", quickFeature, state)
	}
	s.atEnd(func(ctx context.Context) error { return s.Features.Disable(ctx, quickFeature) })
}

// restoreName returns a function that restores the current name.
func (s *suite) restoreName(name string) func(context.Context) error {
	return func(ctx context.Context) error { return s.System.SetHostName(ctx, name) }
}
