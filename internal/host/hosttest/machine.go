package hosttest

import (
	"context"
	"net/netip"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

func systemBehaviors() []Behavior {
	return []Behavior{
		{"System.Info", "product, edition, version and architecture are reported", func(s *suite) {
			info := s.systemInfo()
			expectEqual(s, "product begins with Windows Server", strings.HasPrefix(info.Product, "Windows Server "), true)
			expectEqual(s, "edition begins with Server", strings.HasPrefix(info.Edition, "Server"), true)
			expectEqual(s, "version begins with 10.0.", strings.HasPrefix(info.Version, "10.0."), true)
			expectEqual(s, "parts of the version", strings.Count(info.Version, ".")+1, 3)
			expectEqual(s, "has a revision", info.Revision > 0, true)
			expectEqual(s, "architecture", info.Architecture, "amd64")
		}},
		{"System.Info", "machine ID and boot ID do not change between two queries", func(s *suite) {
			info, again := s.systemInfo(), s.systemInfo()
			expectEqual(s, "has a machine ID", info.MachineID != "", true)
			expectEqual(s, "machine ID", again.MachineID, info.MachineID)
			expectEqual(s, "has a boot ID", info.BootID != "", true)
			expectEqual(s, "boot ID", again.BootID, info.BootID)
			expectEqual(s, "has booted", info.BootTime.IsZero(), false)
			expectEqual(s, "boot time", again.BootTime.Equal(info.BootTime), true)
		}},
		{"System.Info", "the machine has a host name and IPv4 addresses other than loopback", func(s *suite) {
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
		{"System.Info", "memory size and free disk space are reported", func(s *suite) {
			info := s.systemInfo()
			expectEqual(s, "memory", info.MemoryBytes > 64<<20, true)
			expectEqual(s, "free disk", info.FreeDiskBytes > 1<<20, true)
		}},
	}
}

func hostNameBehaviors() []Behavior {
	const name = "wmco-contract"
	return []Behavior{
		{"System.SetHostName", "a new name is pending until the next reboot, and setting the current name cancels it", func(s *suite) {
			before := s.systemInfo()
			if before.PendingHostName != "" {
				s.skipBehavior("name %s is already pending until a reboot", before.PendingHostName)
			}
			s.atEnd(s.restoreName(before.HostName))
			s.requireNoError(s.System.SetHostName(s.ctx, name))
			pending := s.systemInfo()
			expectEqual(s, "host name", pending.HostName, before.HostName)
			expectEqual(s, "pending host name", strings.ToLower(pending.PendingHostName), name)
			expectEqual(s, "reboot pending", pending.RebootPending, true)
			s.requireNoError(s.System.SetHostName(s.ctx, before.HostName))
			after := s.systemInfo()
			expectEqual(s, "pending host name, canceled", after.PendingHostName, "")
			expectEqual(s, "reboot pending, canceled", after.RebootPending, before.RebootPending)
		}},
		{"System.SetHostName", "invalid names are rejected", func(s *suite) {
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
		{"Features.State", "the state of an unsupported feature is unknown", func(s *suite) {
			expectEqual(s, "state", s.featureState(unknown), host.FeatureUnknown)
		}},
		{"Features.State", "the feature Containers is known, and its name is case-insensitive", func(s *suite) {
			state := s.featureState("Containers")
			expectEqual(s, "known", state != host.FeatureUnknown, true)
			expectEqual(s, "state", s.featureState("containers"), state)
		}},
		{"Features.Enable", "a feature without reboot is enabled immediately, and enabling it again is no error", func(s *suite) {
			s.borrowFeature()
			for range 2 {
				s.requireNoError(s.Features.Enable(s.ctx, quickFeature))
				expectEqual(s, "state", s.featureState(quickFeature), host.FeatureEnabled)
			}
		}},
		{"Features.Disable", "a feature without reboot is disabled immediately, and disabling it again is no error", func(s *suite) {
			s.borrowFeature()
			s.requireNoError(s.Features.Enable(s.ctx, quickFeature))
			for range 2 {
				s.requireNoError(s.Features.Disable(s.ctx, quickFeature))
				expectEqual(s, "state", s.featureState(quickFeature), host.FeatureDisabled)
			}
		}},
		{"Features.Enable", "enabling an unsupported feature fails", func(s *suite) {
			s.requireError(s.Features.Enable(s.ctx, unknown), host.ErrNotExist)
		}},
		{"Features.Disable", "disabling an unsupported feature fails", func(s *suite) {
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
		s.skipBehavior("feature %s is %s and may be in use", quickFeature, state)
	}
	s.atEnd(func(ctx context.Context) error { return s.Features.Disable(ctx, quickFeature) })
}

// restoreName returns a function that restores the current name.
func (s *suite) restoreName(name string) func(context.Context) error {
	return func(ctx context.Context) error { return s.System.SetHostName(ctx, name) }
}
