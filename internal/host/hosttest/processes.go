package hosttest

import (
	"context"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// processesByID returns the running processes by ID.
func (s *suite) processesByID() map[int]host.Process {
	all, err := s.Processes.List(s.ctx)
	s.requireNoError(err)
	byID := map[int]host.Process{}
	for _, p := range all {
		byID[p.PID] = p
	}
	return byID
}

// waitForChild returns the process started by the given parent.
func (s *suite) waitForChild(parent int) (found host.Process) {
	s.waitUntil("the child process", func() bool {
		for _, p := range s.processesByID() {
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
	config := s.idleServiceConfig(serviceOne)
	config.CommandLine = host.CommandLine(s.requireProgram(s.machine.Programs.Parent)...)
	parent = s.start(config).PID
	return parent, s.waitForChild(parent)
}

func processBehaviors() []Behavior {
	return []Behavior{
		{"Processes.Self", "the process of the caller is listed", func(s *suite) {
			self := s.Processes.Self()
			if _, there := s.processesByID()[self]; !there {
				s.Errorf("process %d is missing", self)
			}
		}},
		{"Processes.List", "the process of a service is listed with name and path", func(s *suite) {
			pid := s.start(s.idleServiceConfig(serviceOne)).PID
			p, there := s.processesByID()[pid]
			expectEqual(s, "there", there, true)
			program := s.machine.Programs.Idle[0]
			expectEqual(s, "path", strings.ToLower(p.Path), strings.ToLower(program))
			expectEqual(s, "name", strings.ToLower(p.Name), strings.ToLower(program[strings.LastIndexByte(program, '\\')+1:]))
		}},
		{"Processes.List", "a process is listed with its parent process", func(s *suite) {
			parent, child := s.startParent()
			expectEqual(s, "parent", child.Parent, parent)
		}},
		{"Processes.List", "a process is listed with its start time", func(s *suite) {
			before := s.processesByID()[s.Processes.Self()].Started
			pid := s.start(s.idleServiceConfig(serviceOne)).PID
			first := s.processesByID()[pid].Started
			expectEqual(s, "start time is reported", !before.IsZero() && !first.IsZero(), true)
			expectEqual(s, "started after the test process", !first.Before(before), true)
			s.requireNoError(s.Services.Stop(s.ctx, serviceOne))
			s.requireNoError(s.Services.Start(s.ctx, serviceOne))
			services, err := s.Services.Query(s.ctx, serviceOne)
			s.requireNoError(err)
			expectEqual(s, "the next process starts later", s.processesByID()[services[0].PID].Started.After(first), true)
		}},
		{"Processes.Kill", "a killed process no longer exists, and a missing process is no error", func(s *suite) {
			pid := s.start(s.idleServiceConfig(serviceOne)).PID
			for range 2 {
				s.requireNoError(s.Processes.Kill(s.ctx, pid))
				_, there := s.processesByID()[pid]
				expectEqual(s, "exists", there, false)
			}
		}},
		{"Processes.Kill", "a child process outlives its parent process", func(s *suite) {
			parent, child := s.startParent()
			s.requireNoError(s.Processes.Kill(s.ctx, parent))
			p, there := s.processesByID()[child.PID]
			expectEqual(s, "exists", there, true)
			expectEqual(s, "path", p.Path, child.Path)
			s.requireNoError(s.Processes.Kill(s.ctx, child.PID))
			_, there = s.processesByID()[child.PID]
			expectEqual(s, "exists after its own end", there, false)
		}},
	}
}
