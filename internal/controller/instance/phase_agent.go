package instance

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// sendAgent is the step that an administrator sees while the agent is on its way, in whatever form.
const sendAgent = "SendAgent"

// bringAgent has the agent on the host and returns its path. What lies in the agent's own folder is run only where an agent of ours has told
// what the host is: it has closed that folder to others before. There a former agent lays out the new one of a patch or of the compressed
// program. Everywhere else, and whatever keeps it from that, the program is sent as it is, to where only administrators can put one.
func (s *scope) bringAgent(ctx context.Context, agent remote.Agent) (string, error) {
	if s.instance.Status.Host != nil {
		path := nodespec.AgentPath(agent.SHA256)
		there, err := s.connection.Has(ctx, path, agent.Size)
		if there || err != nil {
			return path, err
		}
		laidOut, err := s.sendByFormer(ctx, agent)
		if laidOut {
			return path, nil
		}
		if err != nil {
			log.FromContext(ctx).Info("the agent on the host has not laid out the new one, which is sent whole", "reason", err.Error())
		}
	}
	path, _, err := s.connection.EnsureAgent(ctx, agent, s.transferProgress(ctx, sendAgent))
	return path, err
}

// sendByFormer has a former agent lay out the new one, and tells whether it did. It does nothing where there is none.
func (s *scope) sendByFormer(ctx context.Context, agent remote.Agent) (laidOut bool, err error) {
	if ref := s.instance.Status.NodeRef; ref == nil || ref.UID == "" {
		return false, nil // no agent has ever finished its work there
	}
	folders, err := s.connection.Agents(ctx)
	if err != nil {
		return false, err
	}
	former, file := formerAgent(folders, agent.SHA256, s.Payload.Patches(agent.SHA256))
	if former == "" {
		return false, nil
	}
	archive, err := s.Packer.Packed(ctx, []string{file})
	if err != nil {
		return false, err
	}
	path := nodespec.InboxPayload(archive.SHA256)
	if err := s.sendArchive(ctx, sendAgent, path, archive); err != nil {
		return false, err
	}
	_, err = s.connection.Run(ctx, former, verb.Receive, []string{"--agent", "sha256:" + agent.SHA256, "--payload", path}, nil)
	return err == nil, err
}

// formerAgent chooses the agent that lays out the new one, and the file or patch of the payload that it is sent: the smallest patch to the
// new agent from one that is there, else the new agent, for the one that came last. The path is empty when there is no other agent.
func formerAgent(folders []string, sum string, patches []payload.Patch) (path, file string) {
	folders = slices.DeleteFunc(slices.Clone(folders), func(folder string) bool { return strings.HasPrefix(sum, folder) })
	for _, patch := range patches {
		if slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(patch.From, folder) }) {
			return nodespec.AgentPath(patch.From), patch.SHA256
		}
	}
	if len(folders) == 0 {
		return "", ""
	}
	return nodespec.AgentPath(folders[0]), sum
}
