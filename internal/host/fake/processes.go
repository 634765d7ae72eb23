package fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// processTable implements host.Processes for one process.
type processTable struct{ p *Process }

func (t processTable) List(ctx context.Context) (list []host.Process, err error) {
	err = t.p.runOperation(ctx, "Processes", "List", "", func(m *Machine) error { list = m.processList(); return nil })
	return list, err
}

func (m *Machine) processList() []host.Process {
	list := make([]host.Process, 0, len(m.processes))
	for _, p := range m.processes {
		path := p.Path
		if p.image != nil {
			path = p.image.node.fullPath() // a running executable may have been renamed
		}
		list = append(list, host.Process{PID: p.PID, Parent: p.Parent, Name: baseName(p.Path), Path: path,
			Started: p.started})
	}
	slices.SortFunc(list, func(a, b host.Process) int { return cmp.Compare(a.PID, b.PID) })
	return list
}

func (t processTable) Kill(ctx context.Context, pid int) error {
	return t.p.runOperation(ctx, "Processes", "Kill", fmt.Sprint(pid), func(m *Machine) error {
		p := m.processes[pid]
		if p == nil {
			return nil
		}
		if p.critical {
			return fmt.Errorf("end process %d (%s): %w", pid, baseName(p.Path), errDenied)
		}
		t.p.recordEntry(KindProcess, "kill "+p.commandLine(), 0)
		p.endProcess(exitKilled, true)
		return nil
	})
}

func (t processTable) Self() int { return t.p.PID }

// RunningProcesses returns the running processes, sorted by ID.
func (m *Machine) RunningProcesses() []host.Process {
	m.lock()
	defer m.unlock()
	return m.processList()
}

// ReuseProcessID assigns the ID of an ended process to the next process, as Windows soon does.
func (m *Machine) ReuseProcessID(pid int) {
	m.lock()
	defer m.unlock()
	m.reusedPID = pid
}

// nextPID returns the ID of the next process.
func (m *Machine) nextPID() int {
	if pid := m.reusedPID; pid != 0 {
		m.reusedPID = 0
		return pid
	}
	m.lastPID += 4
	return m.lastPID
}

// processNamed returns the lowest process ID with that name, or 0 if there is none.
func (m *Machine) processNamed(name string) int {
	pid := 0
	for _, p := range m.processes {
		if foldCase(baseName(p.Path)) == name && (pid == 0 || p.PID < pid) {
			pid = p.PID
		}
	}
	return pid
}

// startSystemProcesses creates the processes that exist before any service.
func (m *Machine) startSystemProcesses() {
	m.lastPID = 0
	m.newProcess(&Process{Path: "System", critical: true}, nil)
	parent := 0
	for _, name := range []string{"smss.exe", "csrss.exe", "wininit.exe", "services.exe", "lsass.exe"} {
		var image *node
		if at, err := m.drive.resolveExisting(`C:\Windows\System32\`+name, true); err == nil {
			image = at.node
		}
		parent = m.newProcess(&Process{Path: name, Parent: parent, critical: true}, image).PID
	}
}
