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
		s.skipBehavior("the suite cannot add an outbound rule here")
	}
	there, err := s.machine.AddOutboundRule(s.ctx, ruleName)
	s.requireNoError(err)
	return func() {
		remains, err := there()
		s.requireNoError(err)
		expectEqual(s, "the outbound rule is there", remains, true)
	}
}

func firewallBehaviors() []Behavior {
	return []Behavior{
		{"Firewall.Rules", "the rules of Windows are listed", func(s *suite) {
			_, others := s.splitRules()
			expectEqual(s, "there are some", len(others) > 0, true)
			expectEqual(s, "the first has a name", others[0].Name != "", true)
		}},
		{"Firewall.SetRule", "a rule is what it was set to be, also when it is set anew", func(s *suite) {
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
		{"Firewall.SetRule", "a rule that no firewall can have is refused", func(s *suite) {
			noName, noPort, noProtocol, noProfile := firewallRule(), firewallRule(), firewallRule(), firewallRule()
			noProfile.Profiles = "Home"
			noName.Name, noPort.LocalPort, noProtocol.Protocol = "", 65536, "SMTP"
			for _, rule := range []host.FirewallRule{noName, noPort, noProtocol, noProfile} {
				s.expectAnyError("setting it", s.Firewall.SetRule(s.ctx, rule))
			}
			ours, _ := s.splitRules()
			expectEqual(s, "rules", len(ours), 0)
		}},
		{"Firewall.DeleteRule", "a deleted rule is gone", func(s *suite) {
			s.setRule(firewallRule())
			s.requireNoError(s.Firewall.DeleteRule(s.ctx, ruleName))
			ours, _ := s.splitRules()
			expectEqual(s, "rules", len(ours), 0)
		}},
		{"Firewall.SetRule", "an outbound rule of the same name stays when the rule is replaced", func(s *suite) {
			remains := s.outboundRule()
			s.setRule(firewallRule())
			s.setRule(firewallRule())
			remains()
			ours, _ := s.splitRules()
			expectEqual(s, "rules", len(ours), 1)
		}},
		{"Firewall.DeleteRule", "an outbound rule of the same name stays", func(s *suite) {
			remains := s.outboundRule()
			s.setRule(firewallRule())
			s.requireNoError(s.Firewall.DeleteRule(s.ctx, ruleName))
			remains()
			ours, _ := s.splitRules()
			expectEqual(s, "rules", len(ours), 0)
			s.requireError(s.Firewall.DeleteRule(s.ctx, ruleName), host.ErrNotExist)
			remains()
		}},
		{"Firewall.DeleteRule", "what is not there cannot be deleted", func(s *suite) {
			s.requireError(s.Firewall.DeleteRule(s.ctx, ruleName), host.ErrNotExist)
		}},
	}
}

// createNetwork creates an HNS network and deletes the network at the end.
func (s *suite) createNetwork() host.HNSNetwork {
	network := host.HNSNetwork{Name: networkName, Type: "NAT", Subnet: "10.213.77.0/24"}
	if s.machine.CreateNetwork == nil {
		s.skipBehavior("the suite cannot make an HNS network here")
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
		{"Networks.Networks", "a network is listed with its kind and its subnet", func(s *suite) {
			want := s.createNetwork()
			if got := listed(s); !slices.Equal(got, []host.HNSNetwork{want}) {
				s.Errorf("got %+v, want %+v", got, want)
			}
		}},
		{"Networks.DeleteNetwork", "a deleted network is gone with its endpoints", func(s *suite) {
			s.createNetwork()
			_, err := s.Networks.CreateEndpoint(s.ctx, networkName, "wmco-contract-a", "")
			s.requireNoError(err)
			s.requireNoError(s.Networks.DeleteNetwork(s.ctx, networkName))
			expectEqual(s, "networks", len(listed(s)), 0)
			expectEqual(s, "endpoints", len(s.listEndpoints()), 0)
		}},
		{"Networks.DeleteNetwork", "what is not there cannot be deleted", func(s *suite) {
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
		{"Networks.CreateEndpoint", "endpoints have free addresses of their network, each its own", func(s *suite) {
			subnet := netip.MustParsePrefix(s.createNetwork().Subnet)
			a, b := createEndpoint(s, "wmco-contract-a"), createEndpoint(s, "wmco-contract-b")
			for _, made := range []host.HNSEndpoint{a, b} {
				address, err := netip.ParseAddr(made.Address)
				s.requireNoError(err)
				expectEqual(s, "network", made.Network, networkName)
				expectEqual(s, "has an address of the network", subnet.Contains(address), true)
			}
			expectEqual(s, "they differ", a.Address != b.Address, true)
		}},
		{"Networks.CreateEndpoint", "an endpoint needs a network that is there", func(s *suite) {
			s.createNetwork()
			_, err := s.Networks.CreateEndpoint(s.ctx, networkName+"-none", "wmco-contract-a", "")
			s.requireError(err, host.ErrNotExist)
		}},
		{"Networks.CreateEndpoint", "a second endpoint of the same name is refused", func(s *suite) {
			s.createNetwork()
			createEndpoint(s, "wmco-contract-a")
			_, err := s.Networks.CreateEndpoint(s.ctx, networkName, "wmco-contract-a", "")
			s.requireError(err, host.ErrExist)
			expectEqual(s, "endpoints", len(s.listEndpoints()), 1)
		}},
		{"Networks.CreateEndpoint", "an endpoint gets the address that is given, if it is free", func(s *suite) {
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
		{"Networks.AttachEndpoint", "an attached endpoint is listed so", func(s *suite) {
			s.createNetwork()
			wanted, other := createEndpoint(s, "wmco-contract-a"), createEndpoint(s, "wmco-contract-b")
			expectEqual(s, "attached when it was made", wanted.Attached || s.listEndpoints()[0].Attached, false)
			s.requireNoError(s.Networks.AttachEndpoint(s.ctx, "WMCO-contract-a"))
			for _, each := range s.listEndpoints() {
				expectEqual(s, each.Name+" is attached", each.Attached, each.Name != other.Name)
			}
			s.requireNoError(s.Networks.DeleteEndpoint(s.ctx, "wmco-contract-a"))
			expectEqual(s, "endpoints", len(s.listEndpoints()), 1)
		}},
		{"Networks.AttachEndpoint", "to attach again is no error", func(s *suite) {
			s.createNetwork()
			createEndpoint(s, "wmco-contract-a")
			s.requireNoError(s.Networks.AttachEndpoint(s.ctx, "wmco-contract-a"))
			before := s.listEndpoints()
			s.requireNoError(s.Networks.AttachEndpoint(s.ctx, "wmco-contract-a"))
			if after := s.listEndpoints(); !slices.Equal(before, after) || len(after) != 1 || !after[0].Attached {
				s.Errorf("got %+v after %+v", after, before)
			}
		}},
		{"Networks.AttachEndpoint", "what is not there cannot be attached", func(s *suite) {
			s.createNetwork()
			s.requireError(s.Networks.AttachEndpoint(s.ctx, "wmco-contract-none"), host.ErrNotExist)
		}},
		{"Networks.AttachEndpoint", "the adapter of kube-proxy's endpoint is not taken for the machine's own", func(s *suite) {
			s.createNetwork()
			before := s.systemInfo().Addresses
			made := createEndpoint(s, host.SourceVIPEndpoint)
			s.requireNoError(s.Networks.AttachEndpoint(s.ctx, host.SourceVIPEndpoint))
			expectEqual(s, "the address is among the machine's", slices.Contains(s.systemInfo().Addresses, made.Address), false)
			expectEqual(s, "the first address of the machine", s.systemInfo().Addresses[0], before[0])
		}},
		{"Networks.AttachEndpoint", "the machine has an adapter for the endpoint, and for no other", func(s *suite) {
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
		{"Networks.Endpoints", "an endpoint is listed as it was made", func(s *suite) {
			s.createNetwork()
			expectEqual(s, "endpoints before", len(s.listEndpoints()), 0)
			made := createEndpoint(s, "wmco-contract-a")
			if got := s.listEndpoints(); !slices.Equal(got, []host.HNSEndpoint{made}) {
				s.Errorf("got %+v, want %+v", got, made)
			}
		}},
		{"Networks.DeleteEndpoint", "a deleted endpoint is gone, and only it", func(s *suite) {
			s.createNetwork()
			createEndpoint(s, "wmco-contract-a")
			kept := createEndpoint(s, "wmco-contract-b")
			s.requireNoError(s.Networks.DeleteEndpoint(s.ctx, "wmco-contract-a"))
			if got := s.listEndpoints(); !slices.Equal(got, []host.HNSEndpoint{kept}) {
				s.Errorf("got %+v, want %+v", got, kept)
			}
		}},
		{"Networks.DeleteEndpoint", "what is not there cannot be deleted", func(s *suite) {
			s.createNetwork()
			createEndpoint(s, "wmco-contract-a")
			s.requireError(s.Networks.DeleteEndpoint(s.ctx, "wmco-contract-none"), host.ErrNotExist)
			expectEqual(s, "endpoints", len(s.listEndpoints()), 1)
		}},
	}
}
