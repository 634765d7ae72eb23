package hosttest

import (
	"regexp"

	"github.com/windows-machine-config/wmco/internal/host"
)

func metadataBehaviors() []Behavior {
	return []Behavior{
		{"Metadata.HostName", "a platform without a metadata service is an error", func(s *suite) {
			for _, platform := range []string{"", "None", "VSphere", "Nutanix", "wmco-contract"} {
				_, err := s.Metadata.HostName(s.ctx, platform)
				s.requireError(err, host.ErrNotExist)
			}
		}},
		{"Metadata.HostName", "the metadata service of a cloud returns a valid machine name", func(s *suite) {
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
