package hosttest

import (
	"regexp"

	"github.com/windows-machine-config/wmco/internal/host"
)

func metadataBehaviors() []Behavior {
	return []Behavior{
		{"Metadata.HostName", "a platform without a metadata service has none", func(s *suite) {
			for _, platform := range []string{"", "None", "VSphere", "Nutanix", "wmco-contract"} {
				_, err := s.Metadata.HostName(s.ctx, platform)
				s.requireError(err, host.ErrNotExist)
			}
		}},
		{"Metadata.HostName", "in a cloud with a metadata service the machine has a legal name", func(s *suite) {
			if s.machine.Platform == "" {
				s.skipBehavior("the machine is in no cloud with a metadata service")
			}
			name, err := s.Metadata.HostName(s.ctx, s.machine.Platform)
			s.requireNoError(err)
			label := `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
			expectEqual(s, "is legal: "+name, regexp.MustCompile(`^`+label+`(\.`+label+`)*$`).MatchString(name), true)
		}},
	}
}
