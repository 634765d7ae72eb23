package instance

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// desired is the NodeSpec of the host, as far as it is known from the cluster and the status.
func (s *scope) desired(podSubnet string) (nodespec.NodeSpec, error) {
	status := s.instance.Status
	if status.Host == nil || len(status.Host.Addresses) == 0 {
		return nodespec.NodeSpec{}, fmt.Errorf("host %s has told no IPv4 address yet", s.instance.Spec.Address)
	}
	agent, err := s.Payload.Agent()
	if err != nil {
		return nodespec.NodeSpec{}, err
	}
	spec, err := nodespec.Make(nodespec.Inputs{
		Cluster: s.cluster,
		Instance: nodespec.Instance{
			Name: s.instance.Name, NodeName: s.nodeName(), HostName: s.instance.Spec.HostName,
			NodeIP: status.Host.Addresses[0], BYOH: s.byoh(), Registration: status.Registration,
		},
		Payload: components(s.Payload, s.cluster.Platform), Agent: payloadFile(agent),
		OperatorVersion: s.Version, PodSubnet: podSubnet,
		LogSettings: s.Log, Debug: s.Debug, PauseImage: s.PauseImage,
	})
	return spec, explainMissing(err, s.Payload)
}

// explainMissing adds to the error of Make about missing programs why the payload has them not.
func explainMissing(err error, p *payload.Payload) error {
	var lacks *nodespec.MissingProgramsError
	if !errors.As(err, &lacks) {
		return err
	}
	var reasons []string
	for _, program := range lacks.Programs {
		if reason := p.Missing(componentOf(program, p)); reason != nil && !slices.Contains(reasons, reason.Error()) {
			reasons = append(reasons, reason.Error())
		}
	}
	if len(reasons) == 0 {
		return fmt.Errorf("%w; build the payload again", err)
	}
	return fmt.Errorf("%w; %s", err, strings.Join(reasons, "; "))
}

// componentOf is the component that has the program, or should have it: one that is absent has no list of files, but mostly the name of
// its program.
func componentOf(program string, p *payload.Payload) string {
	for _, component := range p.Manifest().Components {
		if slices.ContainsFunc(component.Files, func(file payload.File) bool { return file.Path == program }) {
			return component.Name
		}
	}
	return strings.TrimSuffix(program, ".exe")
}

// components are the parts of the payload for hosts of a platform, without the agent, which travels first and alone.
func components(p *payload.Payload, platform string) []nodespec.Component {
	var result []nodespec.Component
	for _, component := range p.Components(platform) {
		if component.Name == payload.ComponentAgent {
			continue
		}
		files := make([]nodespec.PayloadFile, len(component.Files))
		for i, file := range component.Files {
			files[i] = payloadFile(file)
		}
		result = append(result, nodespec.Component{Name: component.Name, Version: component.Version, Files: files})
	}
	return result
}

func payloadFile(file payload.File) nodespec.PayloadFile {
	return nodespec.PayloadFile{Name: file.Path, SHA256: file.SHA256, Size: file.Size}
}

// agentFile is the agent's executable as it is sent.
func (s *scope) agentFile() (remote.Agent, error) {
	file, err := s.Payload.Agent()
	if err != nil {
		return remote.Agent{}, err
	}
	return remote.Agent{SHA256: file.SHA256, Size: file.Size, Open: func() (io.ReadCloser, error) { return s.Payload.Open(file.SHA256) }}, nil
}

// missing are the payload files that the spec wants and the host lacks.
func missing(spec nodespec.NodeSpec, present map[string]string) []string {
	var result []string
	for _, release := range spec.Releases {
		for _, file := range release.Files {
			if _, ok := present[file.SHA256]; !ok {
				result = append(result, file.SHA256)
			}
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}
