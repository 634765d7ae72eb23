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
			info := s.info()
			is(s, "product begins with Windows Server", strings.HasPrefix(info.Product, "Windows Server "), true)
			is(s, "edition begins with Server", strings.HasPrefix(info.Edition, "Server"), true)
			is(s, "version begins with 10.0.", strings.HasPrefix(info.Version, "10.0."), true)
			is(s, "parts of the version", strings.Count(info.Version, ".")+1, 3)
			is(s, "has a revision", info.Revision > 0, true)
			is(s, "architecture", info.Architecture, "amd64")
		}},
		{"System.Info", "the machine has an identity, which a second question does not change", func(s *suite) {
			info, again := s.info(), s.info()
			is(s, "has a machine ID", info.MachineID != "", true)
			is(s, "machine ID", again.MachineID, info.MachineID)
			is(s, "has a boot ID", info.BootID != "", true)
			is(s, "boot ID", again.BootID, info.BootID)
			is(s, "has booted", info.BootTime.IsZero(), false)
			is(s, "boot time", again.BootTime.Equal(info.BootTime), true)
		}},
		{"System.Info", "the machine has a name and IPv4 addresses that others can reach", func(s *suite) {
			info := s.info()
			is(s, "has a host name", info.HostName != "", true)
			is(s, "has addresses", len(info.Addresses) > 0, true)
			for _, address := range info.Addresses {
				parsed, err := netip.ParseAddr(address)
				if err != nil || !parsed.Is4() || parsed.IsLoopback() || parsed.IsUnspecified() {
					s.Errorf("address %q: %v", address, err)
				}
			}
		}},
		{"System.Info", "the machine has memory and room on its disk", func(s *suite) {
			info := s.info()
			is(s, "memory", info.MemoryBytes > 64<<20, true)
			is(s, "free disk", info.FreeDiskBytes > 1<<20, true)
		}},
	}
}

func hostNameBehaviors() []Behavior {
	const name = "wmco-contract"
	return []Behavior{
		{"System.SetHostName", "a new name waits for the next reboot, and the present one calls it off", func(s *suite) {
			before := s.info()
			if before.PendingHostName != "" {
				s.notHere("the name %s waits for a reboot already", before.PendingHostName)
			}
			s.atEnd(s.callOffName(before.HostName))
			s.must(s.System.SetHostName(s.ctx, name))
			pending := s.info()
			is(s, "host name", pending.HostName, before.HostName)
			is(s, "pending host name", strings.ToLower(pending.PendingHostName), name)
			is(s, "reboot pending", pending.RebootPending, true)
			s.must(s.System.SetHostName(s.ctx, before.HostName))
			after := s.info()
			is(s, "pending host name, called off", after.PendingHostName, "")
			is(s, "reboot pending, called off", after.RebootPending, before.RebootPending)
		}},
		{"System.SetHostName", "names that Windows does not allow are refused", func(s *suite) {
			before := s.info()
			s.atEnd(s.callOffName(before.HostName))
			for _, bad := range []string{"", "a b", "a.b", `a\b`, "-a", "a-", "12345", strings.Repeat("a", 64)} {
				s.refused("the name "+bad, s.System.SetHostName(s.ctx, bad))
			}
			is(s, "pending host name", s.info().PendingHostName, before.PendingHostName)
		}},
	}
}

func featureBehaviors() []Behavior {
	const unknown = "wmco-contract-feature"
	return []Behavior{
		{"Features.State", "a feature that Windows does not have is unknown", func(s *suite) {
			is(s, "state", s.feature(unknown), host.FeatureUnknown)
		}},
		{"Features.State", "the feature for containers is known, whatever the case of its name", func(s *suite) {
			state := s.feature("Containers")
			is(s, "known", state != host.FeatureUnknown, true)
			is(s, "state", s.feature("containers"), state)
		}},
		{"Features.Enable", "a feature that needs no reboot is enabled at once, and twice is no error", func(s *suite) {
			s.borrowFeature()
			for range 2 {
				s.must(s.Features.Enable(s.ctx, quickFeature))
				is(s, "state", s.feature(quickFeature), host.FeatureEnabled)
			}
		}},
		{"Features.Disable", "a feature that needs no reboot is disabled at once, and twice is no error", func(s *suite) {
			s.borrowFeature()
			s.must(s.Features.Enable(s.ctx, quickFeature))
			for range 2 {
				s.must(s.Features.Disable(s.ctx, quickFeature))
				is(s, "state", s.feature(quickFeature), host.FeatureDisabled)
			}
		}},
		{"Features.Enable", "a feature that Windows does not have cannot be enabled", func(s *suite) {
			s.fails(s.Features.Enable(s.ctx, unknown), host.ErrNotExist)
		}},
		{"Features.Disable", "a feature that Windows does not have cannot be disabled", func(s *suite) {
			s.fails(s.Features.Disable(s.ctx, unknown), host.ErrNotExist)
		}},
	}
}

// quickFeature is an optional feature of every Windows Server that starts nothing and needs no reboot.
const quickFeature = "TelnetClient"

func (s *suite) feature(name string) host.FeatureState {
	state, err := s.Features.State(s.ctx, name)
	s.must(err)
	return state
}

// borrowFeature disables quickFeature at the end of the behavior. If the feature is already in use, the behavior does
// not run.
func (s *suite) borrowFeature() {
	if state := s.feature(quickFeature); state != host.FeatureDisabled {
		s.notHere("the feature %s is %s, and somebody may use it", quickFeature, state)
	}
	s.atEnd(func(ctx context.Context) error { return s.Features.Disable(ctx, quickFeature) })
}

// callOffName returns a function that restores the current name.
func (s *suite) callOffName(name string) func(context.Context) error {
	return func(ctx context.Context) error { return s.System.SetHostName(ctx, name) }
}
