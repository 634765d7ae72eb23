package hosttest

import (
	"context"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

var (
	excludedProgram   = host.Exclusion{Kind: host.ExcludeProcess, Value: Scratch + `\program.exe`}
	excludedDirectory = host.Exclusion{Kind: host.ExcludePath, Value: Scratch + `\folder`}
)

// hasExclusion reports whether Microsoft Defender Antivirus has the exclusion.
func (s *suite) hasExclusion(exclusion host.Exclusion) bool {
	list, err := s.Antivirus.Exclusions(s.ctx)
	s.requireNoError(err)
	return slices.ContainsFunc(list, exclusion.Is)
}

// addExclusion adds an exclusion until the end of the behavior.
func (s *suite) addExclusion(exclusion host.Exclusion) {
	s.atEnd(func(ctx context.Context) error { return s.Antivirus.RemoveExclusion(ctx, exclusion) })
	s.requireNoError(s.Antivirus.AddExclusion(s.ctx, exclusion))
}

func antivirusBehaviors() []Behavior {
	return []Behavior{
		{"Antivirus.IsActive", "Defender is active if and only if its service runs its own program",
			func(s *suite) {
				services, err := s.Services.Query(s.ctx, host.DefenderService)
				s.requireNoError(err)
				processes, err := s.Processes.List(s.ctx)
				s.requireNoError(err)
				active, err := s.Antivirus.IsActive(s.ctx)
				s.requireNoError(err)
				expectEqual(s, "active", active, host.IsDefenderActive(services, processes))
			}},
		{"Antivirus.Exclusions", "only added exclusions exist", withActiveDefender(func(s *suite) {
			expectEqual(s, "program", s.hasExclusion(excludedProgram), false)
			expectEqual(s, "folder", s.hasExclusion(excludedDirectory), false)
		})},
		{"Antivirus.Exclusions", "reading exclusions fails if Defender is not active", withoutDefender(func(s *suite) error {
			_, err := s.Antivirus.Exclusions(s.ctx)
			return err
		})},
		{"Antivirus.AddExclusion", "an added exclusion exists, only for its own kind", withActiveDefender(func(s *suite) {
			s.addExclusion(excludedProgram)
			expectEqual(s, "program", s.hasExclusion(excludedProgram), true)
			expectEqual(s, "the same value as a path", s.hasExclusion(host.Exclusion{Kind: host.ExcludePath, Value: excludedProgram.Value}), false)
			s.addExclusion(excludedDirectory)
			expectEqual(s, "folder", s.hasExclusion(excludedDirectory), true)
		})},
		{"Antivirus.AddExclusion", "adding an existing exclusion in any case is no error and adds nothing", withActiveDefender(func(s *suite) {
			s.addExclusion(excludedProgram)
			before, err := s.Antivirus.Exclusions(s.ctx)
			s.requireNoError(err)
			s.addExclusion(host.Exclusion{Kind: host.ExcludeProcess, Value: `c:\WMCO-contract-test\PROGRAM.exe`})
			after, err := s.Antivirus.Exclusions(s.ctx)
			s.requireNoError(err)
			expectEqual(s, "exclusions", len(after), len(before))
		})},
		{"Antivirus.AddExclusion", "changing exclusions fails if Defender is not active", withoutDefender(func(s *suite) error {
			return s.Antivirus.AddExclusion(s.ctx, excludedProgram)
		})},
		{"Antivirus.RemoveExclusion", "changing exclusions fails if Defender is not active", withoutDefender(func(s *suite) error {
			return s.Antivirus.RemoveExclusion(s.ctx, excludedProgram)
		})},
		{"Antivirus.AddExclusion", "an empty exclusion is rejected", withActiveDefender(func(s *suite) {
			s.expectAnyError("no value", s.Antivirus.AddExclusion(s.ctx, host.Exclusion{Kind: host.ExcludeProcess}))
			s.expectAnyError("no kind", s.Antivirus.AddExclusion(s.ctx, host.Exclusion{Value: excludedProgram.Value}))
		})},
		{"Antivirus.RemoveExclusion", "removing an exclusion keeps the others, and removing it again is no error",
			withActiveDefender(func(s *suite) {
				s.addExclusion(excludedProgram)
				s.addExclusion(excludedDirectory)
				for range 2 {
					s.requireNoError(s.Antivirus.RemoveExclusion(s.ctx, excludedProgram))
					expectEqual(s, "program", s.hasExclusion(excludedProgram), false)
				}
				expectEqual(s, "folder", s.hasExclusion(excludedDirectory), true)
			})},
	}
}

// withActiveDefender returns a check for machines with an active or startable Defender.
func withActiveDefender(check func(*suite)) func(*suite) {
	return func(s *suite) {
		if s.machine.StartAntivirus != nil {
			s.requireNoError(s.machine.StartAntivirus(s.ctx))
		}
		if !s.isDefenderActive() {
			s.skipBehavior("Microsoft Defender Antivirus is not active on this machine")
		}
		check(s)
	}
}

// withoutDefender returns a check that a call fails while Defender is inactive. The suite never stops Defender on a
// real machine; only the machine in memory supports that (Machine.StopAntivirus).
func withoutDefender(call func(*suite) error) func(*suite) {
	return func(s *suite) {
		if s.isDefenderActive() && s.machine.StopAntivirus != nil {
			s.requireNoError(s.machine.StopAntivirus(s.ctx))
		}
		if s.isDefenderActive() {
			s.skipBehavior("Microsoft Defender Antivirus is active on this machine")
		}
		s.requireError(call(s), host.ErrNoAntivirus)
	}
}

func (s *suite) isDefenderActive() bool {
	active, err := s.Antivirus.IsActive(s.ctx)
	s.requireNoError(err)
	return active
}
