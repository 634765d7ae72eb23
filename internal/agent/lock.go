package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// holder is who holds the lock that lets one verb at a time change the host.
type holder struct {
	Verb    verb.Name `json:"verb"`
	PID     int       `json:"pid"`
	Program string    `json:"program"` // path of the process, so that another with the same ID is not taken for it
	BootID  string    `json:"bootID"`
	Since   time.Time `json:"since"`
}

// acquire takes the lock. A repair of the agent's service is waited for; any other verb that lives makes it fail with AgentBusy.
func (a *agent) acquire(ctx context.Context, name verb.Name, bootID string) (release func(), err error) {
	deadline := a.clock.Now().Add(LimitLock)
	for {
		other, err := a.tryLock(ctx, name, bootID)
		switch {
		case err != nil:
			return nil, fmt.Errorf("take the lock %s: %w", nodespec.LockPath, err)
		case other == nil:
			return func() { a.unlock(ctx) }, nil
		case other.Verb != verb.Service || !a.clock.Now().Before(deadline):
			return nil, busy(*other)
		}
		if err := sleep(ctx, a.clock, PollInterval); err != nil {
			return nil, err
		}
	}
}

func busy(other holder) error {
	return &verb.Failure{Reason: verb.ReasonAgentBusy, Message: fmt.Sprintf(
		"the agent's verb %s, process %d, has been at work on the host since %s; it is left to finish",
		other.Verb, other.PID, other.Since.UTC().Format(time.RFC3339))}
}

// tryLock takes the lock, or returns who has it.
func (a *agent) tryLock(ctx context.Context, name verb.Name, bootID string) (*holder, error) {
	for range 3 {
		own, err := json.Marshal(a.self(ctx, name, bootID))
		if err != nil {
			return nil, err
		}
		options := host.WriteOptions{Access: host.AccessAdministrators, Exclusive: true}
		err = a.host.Files.Write(ctx, nodespec.LockPath, bytes.NewReader(own), options)
		if !errors.Is(err, host.ErrExist) {
			return nil, err
		}
		found, err := a.store.read(ctx, nodespec.LockPath)
		if err != nil {
			return nil, err
		}
		other, alive, err := a.judgeLock(ctx, found, bootID)
		if err != nil || alive {
			return &other, err
		}
		if err := a.breakLock(ctx, found); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("others take it at the same time")
}

func (a *agent) self(ctx context.Context, name verb.Name, bootID string) holder {
	h := holder{Verb: name, PID: a.host.Processes.Self(), BootID: bootID, Since: a.clock.Now()}
	h.Program = a.programOf(ctx, h.PID)
	return h
}

// programOf is the path of a process; empty when it is not there.
func (a *agent) programOf(ctx context.Context, pid int) string {
	processes, err := a.host.Processes.List(ctx)
	if err != nil {
		return ""
	}
	for _, process := range processes {
		if process.PID == pid {
			return process.Path
		}
	}
	return ""
}

// judgeLock reports whether the process that wrote the lock still runs. A lock that nobody can read is nobody's.
func (a *agent) judgeLock(ctx context.Context, data []byte, bootID string) (other holder, alive bool, err error) {
	if unreadable := json.Unmarshal(data, &other); unreadable != nil || other.BootID != bootID {
		return other, false, nil //nolint:nilerr // nobody writes a lock that cannot be read and goes on
	}
	processes, err := a.host.Processes.List(ctx)
	if err != nil {
		return other, false, fmt.Errorf("list processes: %w", err)
	}
	for _, process := range processes {
		if process.PID == other.PID {
			return other, other.Program == "" || strings.EqualFold(process.Path, other.Program), nil
		}
	}
	return other, false, nil
}

// breakLock takes a dead lock away. It moves the file before it looks again, so that a lock that another took meanwhile is put back.
func (a *agent) breakLock(ctx context.Context, dead []byte) error {
	aside := fmt.Sprintf("%s.%d", nodespec.LockPath, a.host.Processes.Self())
	err := a.host.Tree.Rename(ctx, nodespec.LockPath, aside)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	moved, err := a.store.read(ctx, aside)
	if err != nil {
		return err
	}
	if !bytes.Equal(moved, dead) {
		return a.host.Tree.Rename(ctx, aside, nodespec.LockPath)
	}
	return a.host.Files.Remove(ctx, aside)
}

// unlock gives the lock back, also when the verb was told to stop. What is left of it when that fails is a dead lock.
func (a *agent) unlock(ctx context.Context) {
	_ = a.host.Files.Remove(context.WithoutCancel(ctx), nodespec.LockPath)
}

// sleep waits on the clock.
func sleep(ctx context.Context, clock clock.Clock, duration time.Duration) error {
	timer := clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
