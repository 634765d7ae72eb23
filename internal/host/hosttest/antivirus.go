package hosttest

import (
	"context"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

var (
	excludedProgram = host.Exclusion{Kind: host.ExcludeProcess, Value: Scratch + `\program.exe`}
	excludedFolder  = host.Exclusion{Kind: host.ExcludePath, Value: Scratch + `\folder`}
)

// excludes reports whether Microsoft Defender Antivirus has the exclusion.
func (s *suite) excludes(exclusion host.Exclusion) bool {
	list, err := s.Antivirus.Exclusions(s.ctx)
	s.must(err)
	return slices.ContainsFunc(list, exclusion.Is)
}

// exclude adds an exclusion until the end of the behavior.
func (s *suite) exclude(exclusion host.Exclusion) {
	s.atEnd(func(ctx context.Context) error { return s.Antivirus.RemoveExclusion(ctx, exclusion) })
	s.must(s.Antivirus.AddExclusion(s.ctx, exclusion))
}

func antivirusBehaviors() []Behavior {
	return []Behavior{
		{"Antivirus.AtWork", "Defender is at work where its service runs in its own program, and nowhere else",
			func(s *suite) {
				services, err := s.Services.Query(s.ctx, host.DefenderService)
				s.must(err)
				processes, err := s.Processes.List(s.ctx)
				s.must(err)
				atWork, err := s.Antivirus.AtWork(s.ctx)
				s.must(err)
				is(s, "at work", atWork, host.DefenderAtWork(services, processes))
			}},
		{"Antivirus.Exclusions", "it has none that nobody has added", atWork(func(s *suite) {
			is(s, "program", s.excludes(excludedProgram), false)
			is(s, "folder", s.excludes(excludedFolder), false)
		})},
		{"Antivirus.Exclusions", "where Defender is not at work it is not asked", notAtWork(func(s *suite) error {
			_, err := s.Antivirus.Exclusions(s.ctx)
			return err
		})},
		{"Antivirus.AddExclusion", "an added exclusion is there, of its own kind only", atWork(func(s *suite) {
			s.exclude(excludedProgram)
			is(s, "program", s.excludes(excludedProgram), true)
			is(s, "the same as a path", s.excludes(host.Exclusion{Kind: host.ExcludePath, Value: excludedProgram.Value}), false)
			s.exclude(excludedFolder)
			is(s, "folder", s.excludes(excludedFolder), true)
		})},
		{"Antivirus.AddExclusion", "adding one again, in whichever case, is no error and adds none", atWork(func(s *suite) {
			s.exclude(excludedProgram)
			before, err := s.Antivirus.Exclusions(s.ctx)
			s.must(err)
			s.exclude(host.Exclusion{Kind: host.ExcludeProcess, Value: `c:\WMCO-contract-test\PROGRAM.exe`})
			after, err := s.Antivirus.Exclusions(s.ctx)
			s.must(err)
			is(s, "exclusions", len(after), len(before))
		})},
		{"Antivirus.AddExclusion", "where Defender is not at work it is not called", notAtWork(func(s *suite) error {
			return s.Antivirus.AddExclusion(s.ctx, excludedProgram)
		})},
		{"Antivirus.RemoveExclusion", "where Defender is not at work it is not called", notAtWork(func(s *suite) error {
			return s.Antivirus.RemoveExclusion(s.ctx, excludedProgram)
		})},
		{"Antivirus.AddExclusion", "an exclusion of nothing is refused", atWork(func(s *suite) {
			s.refused("no value", s.Antivirus.AddExclusion(s.ctx, host.Exclusion{Kind: host.ExcludeProcess}))
			s.refused("no kind", s.Antivirus.AddExclusion(s.ctx, host.Exclusion{Value: excludedProgram.Value}))
		})},
		{"Antivirus.RemoveExclusion", "a removed exclusion is gone and leaves the others, and removing it again is no error",
			atWork(func(s *suite) {
				s.exclude(excludedProgram)
				s.exclude(excludedFolder)
				for range 2 {
					s.must(s.Antivirus.RemoveExclusion(s.ctx, excludedProgram))
					is(s, "program", s.excludes(excludedProgram), false)
				}
				is(s, "folder", s.excludes(excludedFolder), true)
			})},
	}
}

// atWork returns a check for machines with an active or startable Defender.
func atWork(check func(*suite)) func(*suite) {
	return func(s *suite) {
		if s.machine.StartAntivirus != nil {
			s.must(s.machine.StartAntivirus(s.ctx))
		}
		if !s.defended() {
			s.notHere("Microsoft Defender Antivirus is not at work on this machine")
		}
		check(s)
	}
}

// notAtWork returns a check that a call fails while Defender is inactive. The suite never stops Defender on a real
// machine; only the machine in memory supports that (Machine.StopAntivirus).
func notAtWork(call func(*suite) error) func(*suite) {
	return func(s *suite) {
		if s.defended() && s.machine.StopAntivirus != nil {
			s.must(s.machine.StopAntivirus(s.ctx))
		}
		if s.defended() {
			s.notHere("Microsoft Defender Antivirus is at work on this machine")
		}
		s.fails(call(s), host.ErrNoAntivirus)
	}
}

func (s *suite) defended() bool {
	atWork, err := s.Antivirus.AtWork(s.ctx)
	s.must(err)
	return atWork
}
