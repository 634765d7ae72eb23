package hosttest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// listFailures returns the failure codes of lists with their meanings for callers of Antivirus; nil is a general
// failure.
func listFailures() map[uint32]error {
	return map[uint32]error{0x80041003: host.ErrRefused, 0x800106ba: host.ErrNoAntivirus, 0x80041010: nil}
}

// failingList runs a check for each code and for failures after 0 to items items of a list.
func (s *suite) failingList(list string, items int, check func(when string, means error)) {
	if s.machine.FailList == nil {
		s.skipBehavior("the machine cannot simulate failing lists")
	}
	for code, means := range listFailures() {
		for after := range items + 1 {
			mend := s.machine.FailList(list, after, code)
			s.atEnd(func(context.Context) error { mend(); return nil })
			check(fmt.Sprintf("0x%08x after %d items", code, after), means)
			mend()
		}
	}
}

func failingListBehaviors() []Behavior {
	return []Behavior{
		{"Firewall.Rules", "an enumeration that fails at the first item, a later item or the end returns an error", func(s *suite) {
			s.setRule(firewallRule())
			before, err := s.Firewall.Rules(s.ctx)
			s.requireNoError(err)
			s.failingList("firewall", 2, func(when string, _ error) {
				list, err := s.Firewall.Rules(s.ctx)
				s.expectAnyError("a list with "+when, err)
				expectEqual(s, "rules with "+when, len(list), 0)
			})
			s.failingList("firewall", 0, func(when string, _ error) {
				err := s.Firewall.DeleteRule(s.ctx, ruleName)
				expectEqual(s, "deleted or absent with "+when, err == nil || errors.Is(err, host.ErrNotExist), false)
				other := firewallRule()
				other.LocalPort++
				s.expectAnyError("setting it with "+when, s.Firewall.SetRule(s.ctx, other))
			})
			after, err := s.Firewall.Rules(s.ctx)
			s.requireNoError(err)
			expectEqual(s, "rules are unchanged", slices.Equal(before, after), true)
		}},
		{"Antivirus.Exclusions", "an enumeration that fails at the first item or the end returns an error, and nothing changes",
			withActiveDefender(func(s *suite) {
				s.addExclusion(excludedProgram)
				s.failingList("wmi", 1, func(when string, means error) {
					_, err := s.Antivirus.Exclusions(s.ctx)
					for call, err := range map[string]error{"reading": err,
						"adding":   s.Antivirus.AddExclusion(s.ctx, excludedDirectory),
						"removing": s.Antivirus.RemoveExclusion(s.ctx, excludedProgram)} {
						s.expectAnyError(call+" with "+when, err)
						expectEqual(s, call+" with "+when+" has the meaning of the code", means == nil || errors.Is(err, means), true)
					}
				})
				expectEqual(s, "program", s.hasExclusion(excludedProgram), true)
				expectEqual(s, "folder", s.hasExclusion(excludedDirectory), false)
			})},
	}
}

// whileVanishing runs a call during which another program deletes a network or an endpoint.
func (s *suite) whileVanishing(name string, code uint32, afterList bool, call func()) {
	if s.machine.Vanish == nil {
		s.skipBehavior("the machine cannot simulate another program that deletes HNS objects")
	}
	vanished := s.machine.Vanish(name, code, afterList)
	call()
	expectEqual(s, name+" was deleted during the call", vanished(), true)
}

// withNotFoundCodes runs a check with each code for an object that does not exist: HNS' own, and ERROR_NOT_FOUND.
func withNotFoundCodes(check func(s *suite, code uint32)) func(*suite) {
	return func(s *suite) {
		for _, code := range []uint32{0, 0x80070490} {
			s.createNetwork()
			check(s, code)
			s.requireNoError(ignoreNotExist(s.Networks.DeleteNetwork(s.ctx, networkName)))
		}
	}
}

func vanishingBehaviors() []Behavior {
	const gone, kept = "wmco-contract-a", "wmco-contract-b"
	return []Behavior{
		{"Networks.Endpoints", "an endpoint deleted during a list is omitted", withNotFoundCodes(
			func(s *suite, code uint32) {
				createEndpoint(s, gone)
				want := createEndpoint(s, kept)
				s.whileVanishing(gone, code, false, func() {
					if got := s.listEndpoints(); !slices.Equal(got, []host.HNSEndpoint{want}) {
						s.Errorf("got %+v, want %+v", got, want)
					}
				})
			})},
		{"Networks.DeleteEndpoint", "an endpoint deleted by another program is no error", withNotFoundCodes(
			func(s *suite, code uint32) {
				createEndpoint(s, gone)
				s.whileVanishing(gone, code, true, func() { s.requireNoError(s.Networks.DeleteEndpoint(s.ctx, gone)) })
				expectEqual(s, "endpoints", len(s.listEndpoints()), 0)
			})},
		{"Networks.DeleteNetwork", "a network deleted by another program is no error", withNotFoundCodes(
			func(s *suite, code uint32) {
				s.whileVanishing(networkName, code, true, func() {
					s.requireNoError(s.Networks.DeleteNetwork(s.ctx, networkName))
				})
			})},
		{"Networks.CreateEndpoint", "a network deleted by another program does not exist", withNotFoundCodes(
			func(s *suite, code uint32) {
				s.whileVanishing(networkName, code, true, func() {
					_, err := s.Networks.CreateEndpoint(s.ctx, networkName, gone, "")
					s.requireError(err, host.ErrNotExist)
				})
			})},
		{"Networks.AttachEndpoint", "an endpoint deleted by another program does not exist", withNotFoundCodes(
			func(s *suite, code uint32) {
				createEndpoint(s, gone)
				s.whileVanishing(gone, code, true, func() {
					s.requireError(s.Networks.AttachEndpoint(s.ctx, gone), host.ErrNotExist)
				})
			})},
	}
}
