// Package hostsession inspects hosts independently of the running operator: over a separate connection, with agent
// commands that change nothing and take no lock. Files copied to a host for a visit are deleted at the end of the
// visit.
package hostsession

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// cleanupTimeout is the timeout for deleting the files of a visit, even of an interrupted visit.
const cleanupTimeout = 30 * time.Second

// removeRetryDelay is the delay before the deletion is retried.
const removeRetryDelay = time.Second

// Connector begins visits.
type Connector struct {
	Dialer  *remote.Dialer
	Payload *payload.Payload // contains the agent
	Clock   clock.Clock
	Rand    io.Reader // for the name of a visit's directory
	// Instances lists the WindowsInstances, which explain a changed host key; nil lists none.
	Instances func(ctx context.Context) ([]v1alpha1.WindowsInstance, error)
}

// Session is a visit of a host, from its login on.
type Session struct {
	*remote.Connection
	connector   Connector
	name        string   // of its files
	agent       string   // path; empty before EnsureAgent
	agentCopied bool     // the host had no agent of this operator
	copiedPaths []string // paths that Finish deletes
}

// Connect connects to a host and logs in.
func (v Connector) Connect(ctx context.Context, target remote.Target) (*Session, error) {
	var random [4]byte
	if _, err := io.ReadFull(v.Rand, random[:]); err != nil {
		return nil, fmt.Errorf("generate a name for the session: %w", err)
	}
	connection, err := v.Dialer.Connect(ctx, target)
	if err != nil {
		return nil, v.explainChangedKey(ctx, target, err)
	}
	return &Session{Connection: connection, connector: v, name: "visit-" + hex.EncodeToString(random[:])}, nil
}

// explainChangedKey returns the error of a connection. If the host presented the pinned key of another
// instance, the error reports that instance and does not suggest accepting the key.
func (v Connector) explainChangedKey(ctx context.Context, target remote.Target, err error) error {
	if remote.ReasonOf(err) != remote.ReasonHostKeyChanged || v.Instances == nil {
		return err
	}
	instances, listErr := v.Instances(ctx)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	for i := range instances {
		if instances[i].Name == target.Instance {
			return hostjobs.ExplainChangedKey(&instances[i], instances, err)
		}
	}
	return err
}

// EnsureAgent finds the agent of this operator on the host, or copies one there. ours means that an agent has
// restricted its own directory to administrators; otherwise the files there are never run. The copy is separate from
// the agents that the operator installs, which may change in the meantime. Repeated calls do nothing.
func (v *Session) EnsureAgent(ctx context.Context, ours bool) error {
	if v.agent != "" {
		return nil
	}
	agent, err := v.connector.Payload.Agent()
	if err != nil {
		return err
	}
	if ours {
		path := nodespec.AgentPath(agent.SHA256)
		if there, err := v.Has(ctx, path, agent.Size); err != nil || there {
			v.agent = path
			return err
		}
	}
	program, err := v.connector.Payload.Open(agent.SHA256)
	if err != nil {
		return fmt.Errorf("read the agent's program: %w", err)
	}
	defer func() { _ = program.Close() }()
	folder := nodespec.LandingRoot + `\` + v.name
	v.copiedPaths = append(v.copiedPaths, folder)
	path := folder + `\` + nodespec.AgentProgram
	if err := v.Upload(ctx, path, agent.Size, program, nil); err != nil {
		return err
	}
	v.agent, v.agentCopied = path, true
	v.cleanUp(ctx, nodespec.LandingRoot, v.name)
	return nil
}

// sessionFileName matches the names of all files of visits.
var sessionFileName = regexp.MustCompile(`^visit-[0-9a-f]{8}(\.json)?$`)

// staleFileAge is the age of files that certainly belong to a completed visit.
const staleFileAge = 24 * time.Hour

// cleanUp deletes the files of earlier interrupted visits. These have the name of a visit and are a day older,
// by the host's clock, than the files of this visit. Files that cannot be deleted remain for a later visit.
func (v *Session) cleanUp(ctx context.Context, folder, own string) {
	entries, err := v.List(ctx, folder)
	if err != nil {
		return
	}
	var now time.Time
	for _, entry := range entries {
		if entry.Name() == own {
			now = entry.ModTime()
		}
	}
	var left []string
	for _, entry := range entries {
		if sessionFileName.MatchString(entry.Name()) && now.Sub(entry.ModTime()) > staleFileAge {
			left = append(left, folder+`\`+entry.Name())
		}
	}
	if len(left) > 0 {
		_ = v.Remove(ctx, left...)
	}
}

// HasCopiedAgent reports whether the host had no agent of this operator, so that the visit has copied one.
func (v *Session) HasCopiedAgent() bool { return v.agentCopied }

// FetchFacts requests the facts of the host from the agent.
func (v *Session) FetchFacts(ctx context.Context, arguments ...string) (agentapi.Result, error) {
	return v.run(ctx, agentapi.Inspect, arguments...)
}

// Collect requests the state of the host and its recent events from the agent.
func (v *Session) Collect(ctx context.Context, arguments ...string) (agentapi.Result, error) {
	return v.run(ctx, agentapi.Collect, arguments...)
}

// ErrUnprotected means that non-administrators may read files in the agent's directory, or that the directory does not
// exist.
var ErrUnprotected = errors.New("non-administrators may read the agent's folder on the host")

// Plan requests the agent's plan for a NodeSpec. A NodeSpec contains secrets, and is only sent if the agent has
// just verified that its own directory is closed to non-administrators; otherwise the error is ErrUnprotected.
func (v *Session) Plan(ctx context.Context, spec nodespec.NodeSpec) (agentapi.Result, error) {
	looked, err := v.FetchFacts(ctx)
	if err != nil {
		return agentapi.Result{}, err
	}
	if !looked.Facts.Closed {
		return agentapi.Result{}, ErrUnprotected
	}
	document, err := spec.Encode()
	if err != nil {
		return agentapi.Result{}, err
	}
	name := v.name + ".json"
	path := nodespec.InboxRoot + `\` + name
	v.copiedPaths = append(v.copiedPaths, path)
	if err := v.Upload(ctx, path, int64(len(document)), bytes.NewReader(document), nil); err != nil {
		return agentapi.Result{}, err
	}
	v.cleanUp(ctx, nodespec.InboxRoot, name)
	return v.run(ctx, agentapi.Plan, "--spec", path)
}

// run runs an agent command. The host is not trusted to send genuine output of the agent.
func (v *Session) run(ctx context.Context, name agentapi.Name, arguments ...string) (agentapi.Result, error) {
	line, err := v.Run(ctx, v.agent, name, arguments, nil)
	if err == nil {
		err = agentapi.CheckComplete(name, line)
	}
	if err != nil {
		return agentapi.Result{}, err
	}
	return *line.Result, nil
}

// LeftoverError means that a visit may have left files on the host.
type LeftoverError struct {
	Paths []string
	Err   error
}

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("%s may remain on the host and can be deleted: %v", strings.Join(e.Paths, " and "), e.Err)
}

// Unwrap returns the reason for the failed deletion.
func (e *LeftoverError) Unwrap() error { return e.Err }

// Finish deletes the files of the visit, and disconnects, even if the context has ended.
func (v *Session) Finish(ctx context.Context) error {
	defer v.Close()
	if len(v.copiedPaths) == 0 {
		return nil
	}
	if lost := v.Err(); lost != nil {
		return &LeftoverError{Paths: v.copiedPaths, Err: lost}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := v.removeFiles(ctx); err != nil {
		return &LeftoverError{Paths: v.copiedPaths, Err: err}
	}
	return v.RemoveEmpty(ctx, nodespec.LandingRoot)
}

// removeFiles deletes the files of the visit. After an interruption, the agent may hold its program file open for a
// moment.
func (v *Session) removeFiles(ctx context.Context) error {
	for {
		err := v.Remove(ctx, v.copiedPaths...)
		if remote.ReasonOf(err) != remote.ReasonRemovalIncomplete {
			return err
		}
		select {
		case <-v.connector.Clock.After(removeRetryDelay):
		case <-ctx.Done():
			return err
		}
	}
}
