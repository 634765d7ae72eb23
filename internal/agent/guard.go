package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// guardOwnFolder lets nobody but SYSTEM and administrators into the agent's folder, in which the inbox is. Over SFTP a folder gets the
// permissions of the one above: on most hosts all users may read what lies there. An agent that has just landed moves there.
func (a *agent) guardOwnFolder(ctx context.Context) error {
	landed := nodespec.Within(a.executable, nodespec.LandingRoot)
	if landed {
		if err := a.takeRoot(ctx); err != nil {
			return err
		}
	}
	for _, folder := range []string{nodespec.AgentRoot, nodespec.InboxRoot} {
		if info, err := a.host.Files.Stat(ctx, folder); err == nil && closed(info) {
			continue
		}
		if err := a.host.Tree.MakeDirectory(ctx, folder, host.AccessAdministrators); err != nil {
			return fmt.Errorf("keep all but administrators out of %s: %w", folder, err)
		}
	}
	if landed {
		return a.layOutSelf(ctx)
	}
	return nil
}

// closed reports whether only administrators may use a folder, and nobody else has made it.
func closed(info host.FileInfo) bool {
	return info.Directory && info.LinkTarget == "" && info.Access == host.AccessAdministrators
}

// takeRoot makes C:\k and the agent's folder in it safe for what is to come: the ledger, secrets and programs that run as SYSTEM. All users
// may make folders in C:\, and who has made C:\k before us could put another folder in the place of the agent's at any time. So C:\k is closed
// first, and then what others could have put where only the agent's own things belong goes, while what else lies in it stays.
func (a *agent) takeRoot(ctx context.Context) error {
	root, err := a.host.Files.Stat(ctx, nodespec.Root)
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return fmt.Errorf("look at %s: %w", nodespec.Root, err)
	}
	there := err == nil
	if there && (root.LinkTarget != "" || !root.Directory) {
		return &verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf(
			"%s is no folder of its own but leads elsewhere or is a file; the node's programs must lie in a folder that only administrators can change: move it away",
			nodespec.Root)}
	}
	if err := a.refuseTaken(ctx); err != nil {
		return err
	}
	if there && !closed(root) {
		if err := a.noteRoot(ctx); err != nil {
			return err
		}
	}
	if err := a.closeFolder(ctx, nodespec.Root); err != nil {
		return err
	}
	// From here on nobody else can exchange it, or what lies in it. Somebody may have before.
	if root, err = a.host.Files.Stat(ctx, nodespec.Root); err != nil || !closed(root) {
		return fmt.Errorf("%s was exchanged while it was being closed to others than administrators; a user of the host does that", nodespec.Root)
	}
	if err := a.refuseTaken(ctx); err != nil {
		return err
	}
	if own, err := a.host.Files.Stat(ctx, nodespec.AgentRoot); err == nil && !closed(own) {
		if err := a.host.Files.Remove(ctx, nodespec.AgentRoot); err != nil {
			return fmt.Errorf("remove %s, which others than administrators could change: %w", nodespec.AgentRoot, err)
		}
	}
	return nil
}

// refuseTaken refuses a host in whose C:\k lies what can neither be trusted nor taken away: the folder of an agent that is at work, with the
// only record of what the host was like before, and programs that are not known to be ours.
func (a *agent) refuseTaken(ctx context.Context) error {
	own, err := a.host.Files.Stat(ctx, nodespec.AgentRoot)
	if err == nil && !closed(own) {
		if err := a.refuseAtWork(ctx); err != nil {
			return err
		}
	}
	releases, err := a.host.Files.Stat(ctx, nodespec.ReleasesRoot)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", nodespec.ReleasesRoot, err)
	}
	// An agent has made it whose own folder is lost. Nobody but an administrator can make a folder that belongs to administrators.
	if closed(releases) {
		return nil
	}
	// The ledger names it before the agent makes it.
	if known, err := a.recorded(ctx, nodespec.ReleasesRoot); known || err != nil {
		return err
	}
	return &verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf(
		"%s is there, and no agent of the operator is known to have made it: programs in it would run as the node's; move it away", nodespec.ReleasesRoot)}
}

// refuseAtWork refuses a host whose agent is at work in a folder that others could change.
func (a *agent) refuseAtWork(ctx context.Context) error {
	services, err := a.host.Services.Query(ctx, nodespec.ServiceAgent)
	if err != nil {
		return fmt.Errorf("ask Windows about service %s: %w", nodespec.ServiceAgent, err)
	}
	if len(services) == 0 || !plan.Mentions(services[0].CommandLine, nodespec.AgentRoot) {
		return nil
	}
	return &verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf(
		"service %s runs from %s, to which others than SYSTEM and Administrators have rights: find out whether somebody has changed what lies there, "+
			"and take those rights away (icacls)", nodespec.ServiceAgent, nodespec.AgentRoot)}
}

// recorded reports whether a ledger that only administrators could write names a path.
func (a *agent) recorded(ctx context.Context, path string) (bool, error) {
	if own, err := a.host.Files.Stat(ctx, nodespec.AgentRoot); err != nil || !closed(own) {
		return false, nil //nolint:nilerr // there is no such ledger
	}
	ledger, _, err := a.store.ledger(ctx)
	_, known := ledger.Paths[path]
	return known, err
}

func (a *agent) closeFolder(ctx context.Context, path string) error {
	if err := a.host.Tree.MakeDirectory(ctx, path, host.AccessAdministrators); err != nil {
		return fmt.Errorf("keep all but administrators out of %s: %w", path, err)
	}
	return nil
}

// noteRoot remembers that C:\k was open, before it is closed, until the ledger does. A folder with nothing of anybody's in it is not given
// back, and one that the ledger knows needs no note.
func (a *agent) noteRoot(ctx context.Context) error {
	known, err := a.recorded(ctx, nodespec.Root)
	if err != nil {
		return err
	}
	entries, err := a.readDir(ctx, nodespec.Root)
	if err != nil {
		return err
	}
	others := false
	for _, entry := range entries {
		others = others || !nodespec.SamePath(entry.Path, nodespec.AgentRoot)
	}
	if known || !others {
		return nil
	}
	return a.store.write(ctx, nodespec.FoundPath, []byte(host.AccessInherited))
}

// foundOpen reports whether C:\k was closed to others and the ledger may not say so.
func (a *agent) foundOpen(ctx context.Context) (bool, error) {
	note, err := a.store.read(ctx, nodespec.FoundPath)
	return note != nil, err
}

// asFound are the facts with the access that C:\k had before it was closed, for the ledger.
func (a *agent) asFound(ctx context.Context, facts plan.Facts) (plan.Facts, error) {
	open, err := a.foundOpen(ctx)
	root, there := facts.Files[nodespec.Root]
	if err != nil || !open || !there {
		return facts, err
	}
	root.Access = host.AccessInherited
	facts.Files = maps.Clone(facts.Files)
	facts.Files[nodespec.Root] = root
	return facts, nil
}

// reopen gives C:\k back that was closed and into which nothing else was put.
func (a *agent) reopen(ctx context.Context) error {
	open, err := a.foundOpen(ctx)
	if err != nil || !open {
		return err
	}
	if err := a.host.Tree.MakeDirectory(ctx, nodespec.Root, host.AccessInherited); err != nil {
		return fmt.Errorf("give %s back: %w", nodespec.Root, err)
	}
	return nil
}

// layOutSelf puts the own program to its place, from which the operator and the service run it.
func (a *agent) layOutSelf(ctx context.Context) error {
	sum, err := a.sum(ctx)
	if err != nil {
		return err
	}
	path := nodespec.AgentPath(sum)
	if present, err := a.hashFile(ctx, path); err == nil && present == sum {
		return nil
	}
	if err := a.closeFolder(ctx, strings.TrimSuffix(path, `\`+nodespec.AgentProgram)); err != nil {
		return err
	}
	program, err := a.host.Files.Open(ctx, a.executable)
	if err != nil {
		return fmt.Errorf("read the agent's own program: %w", err)
	}
	defer func() { _ = program.Close() }()
	if err := a.host.Files.Write(ctx, path, program, host.WriteOptions{Access: host.AccessAdministrators}); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
