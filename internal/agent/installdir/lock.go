package installdir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// lockOwner identifies the holder of the lock that lets one command at a time change the host.
type lockOwner struct {
	Command agentapi.Name `json:"verb"`
	PID     int           `json:"pid"`
	Program string        `json:"program"` // path of the process, to detect another process with the same ID
	BootID  string        `json:"bootID"`
	Since   time.Time     `json:"since"`
	// Started is the start time of the process: Windows soon reuses process IDs, and all commands of a release
	// have the same path. Zero if unknown, as in locks of earlier agents.
	Started time.Time `json:"started,omitzero"`
}

// breakerPath is the lock of the process that removes a dead lock.
const breakerPath = nodespec.LockPath + ".breaker"

// Lock is the lock of a host.
type Lock struct {
	Host  host.Host
	Clock clock.Clock
}

// Acquire acquires the lock for a command. It waits for a repair of the agent's service, up to
// timeouts.LockTimeout; any other running command makes Acquire fail with AgentBusy. The boot ID identifies the
// current boot. The caller must call release.
func (f Lock) Acquire(ctx context.Context, name agentapi.Name, bootID string) (release func(), err error) {
	deadline := f.Clock.Now().Add(timeouts.LockTimeout)
	for {
		other, err := f.tryAcquire(ctx, name, bootID)
		switch {
		case err != nil:
			return nil, err
		case other == nil:
			return func() { f.releaseLock(ctx) }, nil
		case other.Command != agentapi.Service || !f.Clock.Now().Before(deadline):
			return nil, busyError(*other)
		}
		if err := timeouts.Sleep(ctx, f.Clock, timeouts.PollInterval); err != nil {
			return nil, err
		}
	}
}

// Try acquires the lock for a command if it is free. Otherwise release is nil.
func (f Lock) Try(ctx context.Context, name agentapi.Name, bootID string) (release func(), err error) {
	other, err := f.tryAcquire(ctx, name, bootID)
	if err != nil || other != nil {
		return nil, err
	}
	return func() { f.releaseLock(ctx) }, nil
}

func busyError(other lockOwner) error {
	return &agentapi.Failure{Reason: agentapi.ReasonAgentBusy, Message: fmt.Sprintf(
		"agent command %s (process %d) has been running since %s and is not interrupted",
		other.Command, other.PID, other.Since.UTC().Format(time.RFC3339))}
}

// tryAcquire acquires the lock, or returns the current holder.
func (f Lock) tryAcquire(ctx context.Context, name agentapi.Name, bootID string) (*lockOwner, error) {
	other, err := f.write(ctx, nodespec.LockPath, f.newOwner(ctx, name, bootID))
	if err != nil {
		return nil, fmt.Errorf("acquire the lock %s: %w", nodespec.LockPath, err)
	}
	return other, nil
}

// write creates the lock at path, or returns its living holder or the living process that removes a dead lock
// there.
func (f Lock) write(ctx context.Context, path string, self lockOwner) (*lockOwner, error) {
	own, err := json.Marshal(self)
	if err != nil {
		return nil, err
	}
	for range 3 {
		options := host.WriteOptions{Access: host.AccessAdministrators, Exclusive: true}
		err = f.Host.Files.Write(ctx, path, bytes.NewReader(own), options)
		if !errors.Is(err, host.ErrExist) {
			return nil, err
		}
		found, err := hostutil.ReadFile(ctx, f.Host.Files, path)
		if err != nil {
			return nil, err
		}
		if found == nil {
			continue // released in the meantime
		}
		other, alive, err := f.isOwnerAlive(ctx, found, self)
		if err != nil || alive {
			return &other, err
		}
		if breaker, err := f.removeDeadLock(ctx, path, found, self); err != nil || breaker != nil {
			return breaker, err
		}
	}
	return nil, errors.New("other processes acquire the lock at the same time")
}

func (f Lock) newOwner(ctx context.Context, name agentapi.Name, bootID string) lockOwner {
	h := lockOwner{Command: name, PID: f.Host.Processes.Self(), BootID: bootID, Since: f.Clock.Now()}
	found, _, _ := hostutil.FindProcess(ctx, f.Host.Processes, h.PID) // without a path, the ID must suffice
	h.Program, h.Started = found.Path, found.Started
	return h
}

// isOwnerAlive reports whether the process that wrote the lock still runs. An unreadable lock has no owner. A lock
// with the process ID of the caller has none either: the former owner has ended.
func (f Lock) isOwnerAlive(ctx context.Context, data []byte, self lockOwner) (other lockOwner, alive bool, err error) {
	unreadable := json.Unmarshal(data, &other)
	if unreadable != nil || other.BootID != self.BootID || other.PID == self.PID {
		return other, false, nil //nolint:nilerr // nobody writes a lock that cannot be read and goes on
	}
	found, there, err := hostutil.FindProcess(ctx, f.Host.Processes, other.PID)
	return other, there && other.isWriter(found), err
}

// isWriter reports whether found, the process with the holder's ID, can have written the lock.
func (h lockOwner) isWriter(found host.Process) bool {
	reused := !h.Started.IsZero() && !found.Started.IsZero() && !found.Started.Equal(h.Started)
	return !reused && (h.Program == "" || strings.EqualFold(found.Path, h.Program))
}

// removeDeadLock removes a dead lock that still exists. A second lock is held meanwhile, so that no other process
// replaces the dead lock between the comparison and the removal. If another living process holds the second
// lock, removeDeadLock returns that holder.
func (f Lock) removeDeadLock(ctx context.Context, path string, dead []byte, self lockOwner) (*lockOwner, error) {
	if path == breakerPath {
		return nil, f.Host.Files.Remove(ctx, path)
	}
	if other, err := f.write(ctx, breakerPath, self); err != nil || other != nil {
		return other, err
	}
	found, err := hostutil.ReadFile(ctx, f.Host.Files, path)
	if err == nil && bytes.Equal(found, dead) {
		err = f.Host.Files.Remove(ctx, path)
	}
	return nil, errors.Join(err, f.Host.Files.Remove(context.WithoutCancel(ctx), breakerPath))
}

// releaseLock releases the lock, even if the command was canceled. If that fails, a dead lock remains.
func (f Lock) releaseLock(ctx context.Context) {
	_ = f.Host.Files.Remove(context.WithoutCancel(ctx), nodespec.LockPath)
}
