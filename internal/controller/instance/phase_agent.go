package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// sendAgent is the step that an administrator sees while the agent is on its way.
const sendAgent = "SendAgent"

// bringAgent has the agent on the host and returns its path. What lies in the agent's own folder is run only where an agent of ours has told
// what the host is: it has closed that folder to others before. Everywhere else the program is sent, to where only administrators can put one.
func (s *scope) bringAgent(ctx context.Context, agent remote.Agent) (string, error) {
	if s.instance.Status.Host != nil {
		path := nodespec.AgentPath(agent.SHA256)
		if there, err := s.connection.Has(ctx, path, agent.Size); there || err != nil {
			return path, err
		}
	}
	path, _, err := s.connection.EnsureAgent(ctx, agent, s.transferProgress(ctx, sendAgent))
	return path, err
}
