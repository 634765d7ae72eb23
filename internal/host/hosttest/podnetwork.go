package hosttest

import (
	"context"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// unanswered is an address that is kept for documentation: nobody has it.
const unanswered = "198.51.100.77:443"

func podNetworkBehaviors() []Behavior {
	return []Behavior{
		{"PodNetwork.Connect", "a pod's connection is made, again and again, and nothing of it is left", func(s *suite) {
			s.network()
			if s.machine.PodTarget == nil {
				s.notHere("there is nothing that pods could reach")
			}
			address, err := s.machine.PodTarget()
			s.must(err)
			for range 2 {
				s.must(s.PodNetwork.Connect(s.ctx, networkName, address, s.info().Addresses[0]))
				is(s, "endpoints", len(s.endpoints()), 0)
			}
		}},
		{"PodNetwork.Connect", "an address that nobody has gives no connection, and nothing is left", func(s *suite) {
			s.network()
			if s.machine.SilencePods != nil {
				s.machine.SilencePods(unanswered)
			}
			ctx, cancel := context.WithTimeout(s.ctx, time.Second)
			defer cancel()
			s.refused("connection", s.PodNetwork.Connect(ctx, networkName, unanswered, s.info().Addresses[0]))
			is(s, "endpoints", len(s.endpoints()), 0)
		}},
		{"PodNetwork.Connect", "there is no way from a network that is not there", func(s *suite) {
			s.network()
			s.fails(s.PodNetwork.Connect(s.ctx, networkName+"-none", unanswered, s.info().Addresses[0]), host.ErrNotExist)
			is(s, "endpoints", len(s.endpoints()), 0)
		}},
		{"PodNetwork.Connect", "a name is no address to connect to", func(s *suite) {
			s.network()
			s.refused("connection", s.PodNetwork.Connect(s.ctx, networkName, "localhost:1", s.info().Addresses[0]))
		}},
	}
}
