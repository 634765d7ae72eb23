// Package installdir keeps C:\k and the agent's own folder in it. Only SYSTEM and administrators can change the node's
// programs there, the agent's program is where the operator and the service run it, files that no release needs are
// deleted, and foreign files are not changed. The lock in it lets one verb at a time change the host: a lock without a
// living process has no owner.
package installdir

import (
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Folder is the agent's folder on a host, and C:\k around it.
type Folder struct {
	Host    host.Host
	Records state.Records
	Program *Program
}

// Guard lets nobody but SYSTEM and administrators into the agent's folder, in which the inbox is. Over SFTP a folder
// gets the permissions of the one above: on most hosts all users may read what lies there. An agent that has just
// landed moves there.
func (f *Folder) Guard(ctx context.Context) error {
	landed := nodespec.Within(f.Program.Path, nodespec.LandingRoot)
	if landed {
		if err := f.refuseForeign(ctx); err != nil {
			return err
		}
		if err := f.takeRoot(ctx); err != nil {
			return err
		}
	}
	for _, folder := range []string{nodespec.AgentRoot, nodespec.InboxRoot} {
		if info, err := f.Host.Files.Stat(ctx, folder); err == nil && closed(info) {
			continue
		}
		if err := f.Host.Tree.MakeDirectory(ctx, folder, host.AccessAdministrators); err != nil {
			return fmt.Errorf("restrict %s to administrators: %w", folder, err)
		}
	}
	if landed {
		return f.Program.layOut(ctx, f.Host)
	}
	return nil
}

// IsClosed reports whether Guard has closed C:\k, the agent's folder and the inbox in it, and they still are so. It changes
// nothing.
func (f *Folder) IsClosed(ctx context.Context) bool {
	for _, folder := range []string{nodespec.Root, nodespec.AgentRoot, nodespec.InboxRoot} {
		if info, err := f.Host.Files.Stat(ctx, folder); err != nil || !closed(info) {
			return false
		}
	}
	return true
}

// closed reports whether only administrators may use a folder, and nobody else has made it.
func closed(info host.FileInfo) bool {
	return info.Directory && info.LinkTarget == "" && info.Access == host.AccessAdministrators
}

// takeRoot makes C:\k and the agent's folder in it safe for what is to come: the ledger, secrets and programs that run
// as SYSTEM. All users may make folders in C:\, and who has made C:\k before us could put another folder in the place
// of the agent's at any time. So C:\k is closed first, and then what others could have put where only the agent's own
// things belong goes, while what else lies in it stays.
func (f *Folder) takeRoot(ctx context.Context) error {
	root, err := f.Host.Files.Stat(ctx, nodespec.Root)
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return fmt.Errorf("look at %s: %w", nodespec.Root, err)
	}
	there := err == nil
	if there && (root.LinkTarget != "" || !root.Directory) {
		return &verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf(
			"%s is a link or a file; the node's programs must be in a folder that only administrators can change: move it away",
			nodespec.Root)}
	}
	if err := f.refuseTaken(ctx); err != nil {
		return err
	}
	if there && !closed(root) {
		if err := f.noteRoot(ctx); err != nil {
			return err
		}
	}
	if err := closeFolder(ctx, f.Host, nodespec.Root); err != nil {
		return err
	}
	// From here on nobody else can exchange it, or what lies in it. Somebody may have before.
	if root, err = f.Host.Files.Stat(ctx, nodespec.Root); err != nil || !closed(root) {
		return fmt.Errorf("%s was replaced while the agent was restricting it to administrators; a user of the host is doing this", nodespec.Root)
	}
	if err := f.refuseTaken(ctx); err != nil {
		return err
	}
	if own, err := f.Host.Files.Stat(ctx, nodespec.AgentRoot); err == nil && !closed(own) {
		if err := f.Host.Files.Remove(ctx, nodespec.AgentRoot); err != nil {
			return fmt.Errorf("remove %s, which non-administrators could change: %w", nodespec.AgentRoot, err)
		}
	}
	return nil
}

// refuseTaken refuses a host in whose C:\k lies what can neither be trusted nor taken away: the folder of an agent that
// is at work, with the only record of what the host was like before, and programs that are not known to be ours.
func (f *Folder) refuseTaken(ctx context.Context) error {
	own, err := f.Host.Files.Stat(ctx, nodespec.AgentRoot)
	if err == nil && !closed(own) {
		if err := f.refuseAtWork(ctx); err != nil {
			return err
		}
	}
	releases, err := f.Host.Files.Stat(ctx, nodespec.ReleasesRoot)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", nodespec.ReleasesRoot, err)
	}
	// An agent has made it whose own folder is lost. Nobody but an administrator can make a folder that belongs to
	// administrators.
	if closed(releases) {
		return nil
	}
	// The ledger names it before the agent makes it.
	if known, err := f.recorded(ctx, nodespec.ReleasesRoot); known || err != nil {
		return err
	}
	return &verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf(
		"%s is there, and no agent of the operator is known to have made it: programs in it would run as the node's; move it away", nodespec.ReleasesRoot)}
}

// refuseAtWork refuses a host whose agent is at work in a folder that others could change.
func (f *Folder) refuseAtWork(ctx context.Context) error {
	services, err := f.Host.Services.Query(ctx, nodespec.ServiceAgent)
	if err != nil {
		return fmt.Errorf("query service %s: %w", nodespec.ServiceAgent, err)
	}
	if len(services) == 0 || !plan.Mentions(services[0].CommandLine, nodespec.AgentRoot) {
		return nil
	}
	return &verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf(
		"service %s runs from %s, which users other than SYSTEM and Administrators can access: check the files for changes, "+
			"then remove these permissions (icacls)", nodespec.ServiceAgent, nodespec.AgentRoot)}
}

func closeFolder(ctx context.Context, h host.Host, path string) error {
	if err := h.Tree.MakeDirectory(ctx, path, host.AccessAdministrators); err != nil {
		return fmt.Errorf("restrict %s to administrators: %w", path, err)
	}
	return nil
}
