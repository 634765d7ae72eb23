package hosttest

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// noSuchName is a name that does not exist in any network: its top-level domain is reserved.
const noSuchName = "wmco-contract.invalid"

func outboundBehaviors() []Behavior {
	return []Behavior{
		{"Outbound.LookupHost", "localhost resolves to the loopback address", func(s *suite) {
			addresses, err := s.Outbound.LookupHost(s.ctx, "localhost")
			s.requireNoError(err)
			expectEqual(s, "127.0.0.1 is among "+strings.Join(addresses, ", "), slices.Contains(addresses, "127.0.0.1"), true)
		}},
		{"Outbound.LookupHost", "an unknown name does not resolve", func(s *suite) {
			addresses, err := s.Outbound.LookupHost(s.ctx, noSuchName)
			s.expectAnyError("name", err)
			expectEqual(s, "addresses", len(addresses), 0)
		}},
		{"Outbound.LookupHost", "a lookup with a done context fails", func(s *suite) {
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			_, err := s.Outbound.LookupHost(ctx, noSuchName)
			s.expectAnyError("name", err)
		}},
		{"Outbound.Connect", "connecting to a port with a listener succeeds", func(s *suite) {
			address := s.serveHTTP(func(http.ResponseWriter, *http.Request) {})
			s.requireNoError(s.Outbound.Connect(s.ctx, strings.TrimPrefix(address, "http://")))
		}},
		{"Outbound.Connect", "connecting to a port without a listener fails", func(s *suite) {
			s.expectAnyError("connection", s.Outbound.Connect(s.ctx, "127.0.0.1:1"))
		}},
		{"Outbound.Connect", "connecting to a host name fails", func(s *suite) {
			s.expectAnyError("connection", s.Outbound.Connect(s.ctx, "localhost:1"))
		}},
		{"Outbound.Connect", "connecting with a done context fails", func(s *suite) {
			address := s.serveHTTP(func(http.ResponseWriter, *http.Request) {})
			ctx, cancel := context.WithCancel(s.ctx)
			cancel()
			s.expectAnyError("connection", s.Outbound.Connect(ctx, strings.TrimPrefix(address, "http://")))
		}},
	}
}
