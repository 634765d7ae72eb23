package agent

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// guardOwnFolder lets nobody but SYSTEM and administrators into the agent's folder, in which the inbox is. The operator has made both over
// SFTP, which gives them the permissions of the folders above: on most hosts all users may read what lies there.
func (a *agent) guardOwnFolder(ctx context.Context) error {
	for _, folder := range []string{nodespec.AgentRoot, nodespec.InboxRoot} {
		if info, err := a.host.Files.Stat(ctx, folder); err == nil && info.Directory && info.Access == host.AccessAdministrators {
			continue
		}
		if err := a.host.Tree.MakeDirectory(ctx, folder, host.AccessAdministrators); err != nil {
			return fmt.Errorf("keep all but administrators out of %s: %w", folder, err)
		}
	}
	return nil
}
