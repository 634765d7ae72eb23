// Package installdir maintains C:\k and the agent's own directory in it. Only SYSTEM and administrators can
// change the node's programs there. The package installs the agent's program, deletes files that no release
// needs, and does not change foreign files. The lock lets one command at a time change the host: a lock without
// a living process is dead.
package installdir

import (
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Directory is the agent's directory on a host, and the surrounding C:\k.
type Directory struct {
	Host    host.Host
	Records state.Records
	Program *Program
}

// Guard restricts the agent's directory with the inbox to SYSTEM and administrators. Directories created over
// SFTP inherit the permissions of the parent: on most hosts, all users may read the content. A newly uploaded
// agent copies itself into the agent's directory.
func (f *Directory) Guard(ctx context.Context) error {
	landed := nodespec.IsWithin(f.Program.Path, nodespec.LandingRoot)
	if landed {
		if err := f.checkForeignContent(ctx); err != nil {
			return err
		}
		if err := f.secureRoot(ctx); err != nil {
			return err
		}
	}
	for _, folder := range []string{nodespec.AgentRoot, nodespec.InboxRoot} {
		if info, err := f.Host.Files.Stat(ctx, folder); err == nil && isClosed(info) {
			continue
		}
		if err := f.Host.Tree.MakeDirectory(ctx, folder, host.AccessAdministrators); err != nil {
			return fmt.Errorf("restrict %s to administrators: %w", folder, err)
		}
	}
	if landed {
		return f.Program.installProgram(ctx, f.Host)
	}
	return nil
}

// IsClosed reports whether C:\k, the agent's directory and the inbox are still restricted by Guard, without
// changing anything.
func (f *Directory) IsClosed(ctx context.Context) bool {
	for _, folder := range []string{nodespec.Root, nodespec.AgentRoot, nodespec.InboxRoot} {
		if info, err := f.Host.Files.Stat(ctx, folder); err != nil || !isClosed(info) {
			return false
		}
	}
	return true
}

// isClosed reports whether a directory was created by an administrator, and only administrators may use it.
func isClosed(info host.FileInfo) bool {
	return info.Directory && info.LinkTarget == "" && info.Access == host.AccessAdministrators
}

// secureRoot secures C:\k and the agent's directory for the ledger, secrets and programs that run as SYSTEM. All
// users may create directories in C:\, and the creator of C:\k could replace the agent's directory at any
// time. Therefore C:\k is restricted first. Then content at the paths of the agent is removed if other users
// could have created it, while other content of C:\k is preserved.
func (f *Directory) secureRoot(ctx context.Context) error {
	root, err := f.Host.Files.Stat(ctx, nodespec.Root)
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return fmt.Errorf("inspect %s: %w", nodespec.Root, err)
	}
	there := err == nil
	if there && (root.LinkTarget != "" || !root.Directory) {
		return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Message: fmt.Sprintf(
			"%s is a link or a file instead of a directory that only administrators can change; move it away",
			nodespec.Root)}
	}
	if err := f.checkRootContent(ctx); err != nil {
		return err
	}
	if there && !isClosed(root) {
		if err := f.recordOpenRoot(ctx); err != nil {
			return err
		}
	}
	if err := restrictDirectory(ctx, f.Host, nodespec.Root); err != nil {
		return err
	}
	// From now on other users cannot replace C:\k or its content, but may have done so before.
	if root, err = f.Host.Files.Stat(ctx, nodespec.Root); err != nil || !isClosed(root) {
		return fmt.Errorf("a user of the host replaced %s while the agent was restricting it to administrators", nodespec.Root)
	}
	if err := f.checkRootContent(ctx); err != nil {
		return err
	}
	if own, err := f.Host.Files.Stat(ctx, nodespec.AgentRoot); err == nil && !isClosed(own) {
		if err := f.Host.Files.Remove(ctx, nodespec.AgentRoot); err != nil {
			return fmt.Errorf("remove %s, which non-administrators could change: %w", nodespec.AgentRoot, err)
		}
	}
	return nil
}

// checkRootContent refuses a host if C:\k contains files that can neither be trusted nor removed. These are the
// directory of an active agent with the only record of the original state, and programs of unknown origin.
func (f *Directory) checkRootContent(ctx context.Context) error {
	own, err := f.Host.Files.Stat(ctx, nodespec.AgentRoot)
	if err == nil && !isClosed(own) {
		if err := f.checkActiveAgent(ctx); err != nil {
			return err
		}
	}
	releases, err := f.Host.Files.Stat(ctx, nodespec.ReleasesRoot)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect %s: %w", nodespec.ReleasesRoot, err)
	}
	// The directory was created by an agent that has lost its own directory. Only an administrator can create a
	// directory owned by administrators.
	if isClosed(releases) {
		return nil
	}
	// The ledger names the directory before the agent creates it.
	if known, err := f.isRecorded(ctx, nodespec.ReleasesRoot); known || err != nil {
		return err
	}
	return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Message: fmt.Sprintf(
		"%s exists and was not created by an agent of the operator, so its programs are not trusted; move it away", nodespec.ReleasesRoot)}
}

// checkActiveAgent refuses a host with an agent that is active in a directory that other users could change.
func (f *Directory) checkActiveAgent(ctx context.Context) error {
	services, err := f.Host.Services.Query(ctx, nodespec.ServiceAgent)
	if err != nil {
		return fmt.Errorf("query service %s: %w", nodespec.ServiceAgent, err)
	}
	if len(services) == 0 || !plan.HasProgramIn(services[0].CommandLine, nodespec.AgentRoot) {
		return nil
	}
	return &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Message: fmt.Sprintf(
		"service %s runs from %s, which users other than SYSTEM and Administrators can access: check the files for changes, "+
			"then remove these permissions (icacls)", nodespec.ServiceAgent, nodespec.AgentRoot)}
}

func restrictDirectory(ctx context.Context, h host.Host, path string) error {
	if err := h.Tree.MakeDirectory(ctx, path, host.AccessAdministrators); err != nil {
		return fmt.Errorf("restrict %s to administrators: %w", path, err)
	}
	return nil
}
