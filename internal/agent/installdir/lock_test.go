package installdir_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/installdir"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// agents is a machine with agent processes that compete for the lock.
type agents struct {
	*testing.T
	*fake.Machine
	ctx       context.Context
	processes chan *fake.Process
}

func newAgents(t *testing.T) *agents {
	t.Helper()
	a := &agents{T: t, processes: make(chan *fake.Process)}
	a.Machine = fake.New(fake.Options{Name: "WIN-1", Programs: func([]byte) (fake.Program, error) {
		return func(ctx context.Context, p *fake.Process) int {
			a.processes <- p
			<-ctx.Done()
			return 0
		}, nil
	}})
	t.Cleanup(a.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	a.ctx = ctx
	a.must(a.Boot(ctx))
	a.must(a.Drive().MkdirAll(nodespec.AgentRoot))
	a.must(a.Drive().WriteFile(agentProgram, []byte("MZ agent")))
	return a
}

const agentProgram = nodespec.AgentRoot + `\` + nodespec.AgentProgram

func (a *agents) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a *agents) startProcess() *fake.Process {
	a.Helper()
	go func() { _, _ = a.Exec(a.ctx, fake.ExecRequest{Path: agentProgram}) }()
	return <-a.processes
}

// tryLock lets a process try the lock, and reports whether the lock was acquired.
func (a *agents) tryLock(p *fake.Process) (held bool) {
	a.Helper()
	release, err := installdir.Lock{Host: p.Host, Clock: clock.RealClock{}}.Try(a.ctx, agentapi.Apply, a.BootID())
	if err != nil && !errors.Is(err, fake.ErrProcessEnded) {
		a.Error(err)
	}
	return release != nil
}

// runBefore runs action before the n-th operation of the process.
func (a *agents) runBefore(p *fake.Process, n int, action func()) {
	seen := 0
	a.OnOperation(func(o fake.Operation) error {
		if o.Process != p {
			return nil
		}
		if seen++; seen == n {
			action()
		}
		return nil
	})
}

// The former holder has died. While the first process removes the dead lock, the second and the third acquire
// it.
func TestLock_OneHolderAfterConcurrentStaleRemoval(t *testing.T) {
	t.Parallel()
	operations := operationsOfTheRemoval(t)
	for second, at := range operations {
		for third, then := range operations {
			t.Run(fmt.Sprintf("the second before %s (%d), the third before %s (%d)", at, second+1, then, third+1), func(t *testing.T) {
				t.Parallel()
				a := newAgents(t)
				a.must(a.Drive().WriteFile(nodespec.LockPath, []byte("{")))
				processes := []*fake.Process{a.startProcess(), a.startProcess(), a.startProcess()}
				held := make([]bool, len(processes))
				a.runBefore(processes[0], second+1, func() { held[1] = a.tryLock(processes[1]) })
				a.runBefore(processes[0], third+1, func() { held[2] = a.tryLock(processes[2]) })
				held[0] = a.tryLock(processes[0])
				holders := 0
				for _, each := range held {
					if each {
						holders++
					}
				}
				if holders != 1 {
					t.Errorf("%d processes hold the lock: %t", holders, held)
				}
			})
		}
	}
}

// operationsOfTheRemoval returns the operations of a process that acquires a dead lock.
func operationsOfTheRemoval(t *testing.T) (operations []string) {
	t.Helper()
	a := newAgents(t)
	a.must(a.Drive().WriteFile(nodespec.LockPath, []byte("{")))
	p := a.startProcess()
	a.OnOperation(func(o fake.Operation) error {
		if o.Process == p {
			operations = append(operations, o.String())
		}
		return nil
	})
	if !a.tryLock(p) {
		t.Fatal("a dead lock is not taken")
	}
	return operations
}

func TestLock_AcquiredAfterKillDuringStaleRemoval(t *testing.T) {
	t.Parallel()
	for i, at := range operationsOfTheRemoval(t) {
		t.Run(fmt.Sprintf("before %s (%d)", at, i+1), func(t *testing.T) {
			t.Parallel()
			a := newAgents(t)
			a.must(a.Drive().WriteFile(nodespec.LockPath, []byte("{")))
			for range 2 {
				p := a.startProcess()
				a.runBefore(p, i+1, p.Kill)
				a.tryLock(p)
				p.Kill()
			}
			if !a.tryLock(a.startProcess()) {
				t.Error("the next process does not get the lock")
			}
			entries, err := a.Host().Files.ReadDir(a.ctx, nodespec.AgentRoot)
			a.must(err)
			for _, entry := range entries {
				if path := nodespec.AgentRoot + `\` + entry.Name; path != nodespec.LockPath && path != agentProgram {
					t.Errorf("%s is left behind", entry.Name)
				}
			}
		})
	}
}
