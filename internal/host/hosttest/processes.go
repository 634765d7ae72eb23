package hosttest

import (
	"context"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// processes returns the running processes by ID.
func (s *suite) processes() map[int]host.Process {
	all, err := s.Processes.List(s.ctx)
	s.must(err)
	byID := map[int]host.Process{}
	for _, p := range all {
		byID[p.PID] = p
	}
	return byID
}

// child returns the process started by the given parent.
func (s *suite) child(parent int) (found host.Process) {
	s.eventually("a child of its own", func() bool {
		for _, p := range s.processes() {
			// The table keeps the ID of an ended parent, which another process may have reused.
			if p.Parent == parent && p.PID != parent && strings.EqualFold(p.Path, s.machine.Programs.Idle[0]) {
				found = p
				return true
			}
		}
		return false
	})
	s.atEnd(func(ctx context.Context) error { return s.Processes.Kill(ctx, found.PID) })
	return found
}

func (s *suite) startParent() (parent int, child host.Process) {
	config := s.idle(serviceOne)
	config.CommandLine = host.CommandLine(s.program(s.machine.Programs.Parent)...)
	parent = s.start(config).PID
	return parent, s.child(parent)
}

func processBehaviors() []Behavior {
	return []Behavior{
		{"Processes.Self", "the caller is in the list", func(s *suite) {
			self := s.Processes.Self()
			if _, there := s.processes()[self]; !there {
				s.Errorf("process %d is missing", self)
			}
		}},
		{"Processes.List", "the process of a service is in the list, with name and path", func(s *suite) {
			pid := s.start(s.idle(serviceOne)).PID
			p, there := s.processes()[pid]
			is(s, "there", there, true)
			program := s.machine.Programs.Idle[0]
			is(s, "path", strings.ToLower(p.Path), strings.ToLower(program))
			is(s, "name", strings.ToLower(p.Name), strings.ToLower(program[strings.LastIndexByte(program, '\\')+1:]))
		}},
		{"Processes.List", "a process names the one that started it", func(s *suite) {
			parent, child := s.startParent()
			is(s, "parent", child.Parent, parent)
		}},
		{"Processes.List", "a process says when it began", func(s *suite) {
			before := s.processes()[s.Processes.Self()].Started
			pid := s.start(s.idle(serviceOne)).PID
			first := s.processes()[pid].Started
			is(s, "told", !before.IsZero() && !first.IsZero(), true)
			is(s, "after the one that looks at it", !first.Before(before), true)
			s.must(s.Services.Stop(s.ctx, serviceOne))
			s.must(s.Services.Start(s.ctx, serviceOne))
			services, err := s.Services.Query(s.ctx, serviceOne)
			s.must(err)
			is(s, "the next one begins later", s.processes()[services[0].PID].Started.After(first), true)
		}},
		{"Processes.Kill", "a killed process is gone, and killing nothing is no error", func(s *suite) {
			pid := s.start(s.idle(serviceOne)).PID
			for range 2 {
				s.must(s.Processes.Kill(s.ctx, pid))
				_, there := s.processes()[pid]
				is(s, "still there", there, false)
			}
		}},
		{"Processes.Kill", "a process outlives the one that started it", func(s *suite) {
			parent, child := s.startParent()
			s.must(s.Processes.Kill(s.ctx, parent))
			p, there := s.processes()[child.PID]
			is(s, "still there", there, true)
			is(s, "path", p.Path, child.Path)
			s.must(s.Processes.Kill(s.ctx, child.PID))
			_, there = s.processes()[child.PID]
			is(s, "still there after its own end", there, false)
		}},
	}
}
