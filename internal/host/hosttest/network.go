package hosttest

import (
	"context"
	"net/netip"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

func firewallRule() host.FirewallRule {
	return host.FirewallRule{Name: ruleName, DisplayName: "Contract test", Protocol: "TCP", LocalPort: 47001,
		Enabled: true, Allow: true}
}

func (s *suite) splitRules() (ours, others []host.FirewallRule) {
	all, err := s.Firewall.Rules(s.ctx)
	s.requireNoError(err)
	for _, rule := range all {
		if rule.Name == ruleName {
			ours = append(ours, rule)
		} else {
			others = append(others, rule)
		}
	}
	return ours, others
}

// setRule sets a rule of the suite and deletes the rule at the end.
func (s *suite) setRule(rule host.FirewallRule) {
	s.atEnd(func(ctx context.Context) error { return s.Firewall.DeleteRule(ctx, rule.Name) })
	s.requireNoError(s.Firewall.SetRule(s.ctx, rule))
}

// outboundRule adds an outbound rule with the name of the suite's rule, and returns a check that the rule exists.
func (s *suite) outboundRule() (remains func()) {
	if s.machine.AddOutboundRule == nil {
		s.skipBehavior("the suite cannot add an outbound rule in this environment")
	}
	there, err := s.machine.AddOutboundRule(s.ctx, ruleName)
	s.requireNoError(err)
	return func() {
		remains, err := there()
		s.requireNoError(err)
		expectEqual(s, "the outbound rule exists", remains, true)
	}
}

func firewallBehaviors() []Behavior {
	return []Behavior{
		{"Firewall.Rules", "the rules of Windows are listed", func(s *suite) {
			_, others := s.splitRules()
			expectEqual(s, "has rules", len(others) > 0, true)
			expectEqual(s, "the first rule has a name", others[0].Name != "", true)
		}},
		{"Firewall.SetRule", "a rule has the specified properties, also after an update", func(s *suite) {
			_, before := s.splitRules()
			blocking, off, datagrams, inside := firewallRule(), firewallRule(), firewallRule(), firewallRule()
			inside.Profiles = host.ProfilesOf(host.ProfileDomain, host.ProfilePrivate)
			blocking.Allow = false
			off.Enabled, off.LocalPort = false, 47002
			datagrams.Protocol, datagrams.DisplayName = "UDP", "Another name"
			for _, rule := range []host.FirewallRule{inside, firewallRule(), blocking, off, datagrams} {
				s.setRule(rule)
				if ours, _ := s.splitRules(); !slices.Equal(ours, []host.FirewallRule{rule}) {
					s.Errorf("got %+v, want %+v", ours, rule)
				}
			}
			_, after := s.splitRules()
			expectEqual(s, "other rules", len(after), len(before))
		}},
		{"Firewall.SetRule", "an invalid rule is rejected", func(s *suite) {
			noName, noPort, noProtocol, noProfile := firewallRule(), firewallRule(), firewallRule(), firewallRule()
			noProfile.Profiles = "Home"
			noName.Name, noPort.LocalPort, noProtocol.Protocol = "", 65536, "SMTP"
			for _, rule := range []host.FirewallRule{noName, noPort, noProtocol, noProfile} {
				s.expectAnyError("setting it", s.Firewall.SetRule(s.ctx, rule))
			}
			ours, _ := s.splitRules()
			expectEqual(s, "rules", len(ours), 0)
		}},
		{"Firewall.DeleteRule", "a deleted rule no longer exists", func(s *suite) {
			s.setRule(firewallRule())
			s.requireNoError(s.Firewall.DeleteRule(s.ctx, ruleName))
			ours, _ := s.splitRules()
			expectEqual(s, "rules", len(ours), 0)
		}},
		{"Firewall.SetRule", "replacing a rule keeps an outbound rule of the same name", func(s *suite) {
			remains := s.outboundRule()
			s.setRule(firewallRule())
			s.setRule(firewallRule())
			remains()
			ours, _ := s.splitRules()
			expectEqual(s, "rules", len(ours), 1)
		}},
		{"Firewall.DeleteRule", "deleting a rule keeps an outbound rule of the same name", func(s *suite) {
			remains := s.outboundRule()
			s.setRule(firewallRule())
			s.requireNoError(s.Firewall.DeleteRule(s.ctx, ruleName))
			remains()
			ours, _ := s.splitRules()
			expectEqual(s, "rules", len(ours), 0)
			s.requireError(s.Firewall.DeleteRule(s.ctx, ruleName), host.ErrNotExist)
			remains()
		}},
		{"Firewall.DeleteRule", "deleting a missing object fails", func(s *suite) {
			s.requireError(s.Firewall.DeleteRule(s.ctx, ruleName), host.ErrNotExist)
		}},
	}
}

// createNetwork creates an HNS network and deletes the network at the end.
func (s *suite) createNetwork() host.HNSNetwork {
	network := host.HNSNetwork{Name: networkName, Type: "NAT", Subnet: "10.213.77.0/24"}
	if s.machine.CreateNetwork == nil {
		s.skipBehavior("the suite cannot create an HNS network in this environment")
	}
	s.requireNoError(s.machine.CreateNetwork(s.ctx, network))
	s.atEnd(func(ctx context.Context) error { return s.Networks.DeleteNetwork(ctx, networkName) })
	return network
}

func (s *suite) listEndpoints() []host.HNSEndpoint {
	all, err := s.Networks.Endpoints(s.ctx)
	s.requireNoError(err)
	return slices.DeleteFunc(all, func(e host.HNSEndpoint) bool { return e.Network != networkName })
}

func networkBehaviors() []Behavior {
	listed := func(s *suite) []host.HNSNetwork {
		all, err := s.Networks.Networks(s.ctx)
		s.requireNoError(err)
		return slices.DeleteFunc(all, func(n host.HNSNetwork) bool { return n.Name != networkName })
	}
	return []Behavior{
		{"Networks.Networks", "a network is listed with type and subnet", func(s *suite) {
			want := s.createNetwork()
			if got := listed(s); !slices.Equal(got, []host.HNSNetwork{want}) {
				s.Errorf("got %+v, want %+v", got, want)
			}
		}},
		{"Networks.DeleteNetwork", "deleting a network also deletes its endpoints", func(s *suite) {
			s.createNetwork()
			_, err := s.Networks.CreateEndpoint(s.ctx, networkName, "wmco-contract-a", "")
			s.requireNoError(err)
			s.requireNoError(s.Networks.DeleteNetwork(s.ctx, networkName))
			expectEqual(s, "networks", len(listed(s)), 0)
			expectEqual(s, "endpoints", len(s.listEndpoints()), 0)
		}},
		{"Networks.DeleteNetwork", "deleting a missing object fails", func(s *suite) {
			s.createNetwork()
			s.requireError(s.Networks.DeleteNetwork(s.ctx, networkName+"-none"), host.ErrNotExist)
			expectEqual(s, "networks", len(listed(s)), 1)
		}},
	}
}

// createEndpoint creates an endpoint with an address chosen by Windows.
func createEndpoint(s *suite, name string) host.HNSEndpoint {
	made, err := s.Networks.CreateEndpoint(s.ctx, networkName, name, "")
	s.requireNoError(err)
	return made
}

func endpointBehaviors() []Behavior {
	return slices.Concat(createdEndpointBehaviors(), attachedEndpointBehaviors(), deletedEndpointBehaviors())
}

func createdEndpointBehaviors() []Behavior {
	return []Behavior{
		{"Networks.CreateEndpoint", "each endpoint gets a different free address of its network", func(s *suite) {
			subnet := netip.MustParsePrefix(s.createNetwork().Subnet)
			a, b := createEndpoint(s, "wmco-contract-a"), createEndpoint(s, "wmco-contract-b")
			for _, made := range []host.HNSEndpoint{a, b} {
				address, err := netip.ParseAddr(made.Address)
				s.requireNoError(err)
				expectEqual(s, "network", made.Network, networkName)
				expectEqual(s, "has an address of the network", subnet.Contains(address), true)
			}
			expectEqual(s, "addresses differ", a.Address != b.Address, true)
		}},
		{"Networks.CreateEndpoint", "creating an endpoint on a missing network fails", func(s *suite) {
			s.createNetwork()
			_, err := s.Networks.CreateEndpoint(s.ctx, networkName+"-none", "wmco-contract-a", "")
			s.requireError(err, host.ErrNotExist)
		}},
		{"Networks.CreateEndpoint", "creating a second endpoint of the same name fails", func(s *suite) {
			s.createNetwork()
			createEndpoint(s, "wmco-contract-a")
			_, err := s.Networks.CreateEndpoint(s.ctx, networkName, "wmco-contract-a", "")
			s.requireError(err, host.ErrExist)
			expectEqual(s, "endpoints", len(s.listEndpoints()), 1)
		}},
		{"Networks.CreateEndpoint", "an endpoint gets the specified address if the address is free", func(s *suite) {
			s.createNetwork()
			const address = "10.213.77.9"
			made, err := s.Networks.CreateEndpoint(s.ctx, networkName, "wmco-contract-a", address)
			s.requireNoError(err)
			expectEqual(s, "address", made.Address, address)
			_, err = s.Networks.CreateEndpoint(s.ctx, networkName, "wmco-contract-b", address)
			s.expectAnyError("a second endpoint with the address", err)
			if got := s.listEndpoints(); !slices.Equal(got, []host.HNSEndpoint{made}) {
				s.Errorf("got %+v, want %+v", got, made)
			}
		}},
	}
}

func attachedEndpointBehaviors() []Behavior {
	return []Behavior{
		{"Networks.AttachEndpoint", "an attached endpoint is listed as attached", func(s *suite) {
			s.createNetwork()
			wanted, other := createEndpoint(s, "wmco-contract-a"), createEndpoint(s, "wmco-contract-b")
			expectEqual(s, "attached after its creation", wanted.Attached || s.listEndpoints()[0].Attached, false)
			s.requireNoError(s.Networks.AttachEndpoint(s.ctx, "WMCO-contract-a"))
			for _, each := range s.listEndpoints() {
				expectEqual(s, each.Name+" is attached", each.Attached, each.Name != other.Name)
			}
			s.requireNoError(s.Networks.DeleteEndpoint(s.ctx, "wmco-contract-a"))
			expectEqual(s, "endpoints", len(s.listEndpoints()), 1)
		}},
		{"Networks.AttachEndpoint", "attaching an endpoint again is no error", func(s *suite) {
			s.createNetwork()
			createEndpoint(s, "wmco-contract-a")
			s.requireNoError(s.Networks.AttachEndpoint(s.ctx, "wmco-contract-a"))
			before := s.listEndpoints()
			s.requireNoError(s.Networks.AttachEndpoint(s.ctx, "wmco-contract-a"))
			if after := s.listEndpoints(); !slices.Equal(before, after) || len(after) != 1 || !after[0].Attached {
				s.Errorf("got %+v after %+v", after, before)
			}
		}},
		{"Networks.AttachEndpoint", "attaching a missing endpoint fails", func(s *suite) {
			s.createNetwork()
			s.requireError(s.Networks.AttachEndpoint(s.ctx, "wmco-contract-none"), host.ErrNotExist)
		}},
		{"Networks.AttachEndpoint", "the address of kube-proxy's endpoint is not listed as an address of the machine", func(s *suite) {
			s.createNetwork()
			before := s.systemInfo().Addresses
			made := createEndpoint(s, host.SourceVIPEndpoint)
			s.requireNoError(s.Networks.AttachEndpoint(s.ctx, host.SourceVIPEndpoint))
			expectEqual(s, "the address is an address of the machine", slices.Contains(s.systemInfo().Addresses, made.Address), false)
			expectEqual(s, "the first address of the machine", s.systemInfo().Addresses[0], before[0])
		}},
		{"Networks.AttachEndpoint", "only an attached endpoint has an adapter", func(s *suite) {
			s.createNetwork()
			createEndpoint(s, "wmco-contract-a")
			createEndpoint(s, host.SourceVIPEndpoint)
			s.requireNoError(s.Networks.AttachEndpoint(s.ctx, host.SourceVIPEndpoint))
			for _, each := range s.listEndpoints() {
				expectEqual(s, each.Name+" has an adapter", each.Adapter != "", each.Name == host.SourceVIPEndpoint)
			}
		}},
	}
}

func deletedEndpointBehaviors() []Behavior {
	return []Behavior{
		{"Networks.Endpoints", "an endpoint is listed as returned by its creation", func(s *suite) {
			s.createNetwork()
			expectEqual(s, "endpoints before", len(s.listEndpoints()), 0)
			made := createEndpoint(s, "wmco-contract-a")
			if got := s.listEndpoints(); !slices.Equal(got, []host.HNSEndpoint{made}) {
				s.Errorf("got %+v, want %+v", got, made)
			}
		}},
		{"Networks.DeleteEndpoint", "deleting an endpoint keeps the other endpoints", func(s *suite) {
			s.createNetwork()
			createEndpoint(s, "wmco-contract-a")
			kept := createEndpoint(s, "wmco-contract-b")
			s.requireNoError(s.Networks.DeleteEndpoint(s.ctx, "wmco-contract-a"))
			if got := s.listEndpoints(); !slices.Equal(got, []host.HNSEndpoint{kept}) {
				s.Errorf("got %+v, want %+v", got, kept)
			}
		}},
		{"Networks.DeleteEndpoint", "deleting a missing object fails", func(s *suite) {
			s.createNetwork()
			createEndpoint(s, "wmco-contract-a")
			s.requireError(s.Networks.DeleteEndpoint(s.ctx, "wmco-contract-none"), host.ErrNotExist)
			expectEqual(s, "endpoints", len(s.listEndpoints()), 1)
		}},
	}
}
