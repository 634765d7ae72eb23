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

// bringAgent has the agent on the host and returns its path. Where a former one of ours is, that one lays out the new one of a patch or of
// the compressed program. Whatever keeps it from that, the program is sent as it is.
func (s *scope) bringAgent(ctx context.Context, agent remote.Agent) (string, error) {
	if ref := s.instance.Status.NodeRef; ref != nil && ref.UID != "" { // else no agent has ever finished its work there
		there, err := s.connection.Has(ctx, nodespec.AgentPath(agent.SHA256), agent.Size)
		if err != nil {
			return "", err
		}
		if !there {
			if err := s.sendByFormer(ctx, agent); err != nil {
				log.FromContext(ctx).Info("the agent on the host has not laid out the new one, which is sent whole", "reason", err.Error())
			}
		}
	}
	path, _, err := s.connection.EnsureAgent(ctx, agent, s.transferProgress(ctx, sendAgent))
	return path, err
}

// sendByFormer has a former agent lay out the new one. It does nothing where there is none.
func (s *scope) sendByFormer(ctx context.Context, agent remote.Agent) error {
	folders, err := s.connection.Agents(ctx)
	if err != nil {
		return err
	}
	former, file := formerAgent(folders, agent.SHA256, s.Payload.Patches(agent.SHA256))
	if former == "" {
		return nil
	}
	archive, err := s.Packer.Packed(ctx, []string{file})
	if err != nil {
		return err
	}
	path := nodespec.InboxPayload(archive.SHA256)
	if err := s.sendArchive(ctx, sendAgent, path, archive); err != nil {
		return err
	}
	_, err = s.connection.Run(ctx, former, verb.Receive, []string{"--agent", "sha256:" + agent.SHA256, "--payload", path}, nil)
	return err
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
