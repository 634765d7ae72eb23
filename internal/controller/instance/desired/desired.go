// Package desired creates the NodeSpec of an instance from the operator's knowledge of the cluster, the payload
// and the host.
package desired

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// SpecBuilder creates NodeSpecs.
type SpecBuilder struct {
	Payload *payload.Payload
	Nodes   nodes.Nodes
	Line    support.ReleaseLine
	Version string // of the operator
	Log     nodespec.LogSettings
	// PauseImage is the image of the container that holds a pod's network; empty for the default of the NodeSpec.
	PauseImage string
	Debug      bool
}

// Build returns the NodeSpec of the host, computed from the cluster, the status and the Node; nil for no Node.
func (m SpecBuilder) Build(s *scope.Scope, node *corev1.Node) (nodespec.NodeSpec, error) {
	status := s.Instance.Status
	if status.Host == nil || len(status.Host.Addresses) == 0 {
		return nodespec.NodeSpec{}, fmt.Errorf("host %s has not reported an IPv4 address yet", s.Instance.Spec.Address)
	}
	in, err := m.commonInputs(s.Cluster, m.KubernetesFor(s))
	if err != nil {
		return nodespec.NodeSpec{}, err
	}
	nodeIP := certrequest.NodeIPChoice{Known: []string{status.Host.NodeIP}, Reached: status.Host.LastReachedAddress, Reported: status.Host.Addresses}
	if node != nil {
		in.PodSubnet = node.Annotations[v1alpha1.AnnotationPodSubnet]
		nodeIP.Known = append(nodeIP.Known, nodeidentity.InternalIPs(node.Status.Addresses)...)
	}
	in.Instance = nodespec.Instance{
		Name: s.Instance.Name, NodeName: s.NodeName(), HostName: s.Instance.Spec.HostName,
		NodeIP: certrequest.ChooseNodeIP(nodeIP, s.Cluster), BYOH: s.IsBYOH(), Registration: status.RegistrationID,
	}
	spec, err := nodespec.Make(in)
	return spec, explainMissing(err, m.Payload, in.Kubernetes)
}

// KubernetesFor returns the minor version of Kubernetes for the node of a host: the version of the cluster. In a
// cluster that is not served, nodes keep their version.
func (m SpecBuilder) KubernetesFor(s *scope.Scope) string {
	return cmp.Or(m.Line.KubernetesFor(s.Cluster.Version), s.Instance.Status.Kubernetes)
}

// commonInputs returns the inputs that are the same for all hosts with a minor version of Kubernetes.
func (m SpecBuilder) commonInputs(cluster nodespec.Cluster, kubernetes string) (nodespec.Inputs, error) {
	agent, err := m.Payload.Agent()
	if err != nil {
		return nodespec.Inputs{}, err
	}
	return nodespec.Inputs{
		Cluster: cluster, Kubernetes: kubernetes, Payload: payloadComponents(m.Payload, payload.Target{Platform: cluster.Platform, Kubernetes: kubernetes}),
		Agent: payloadFile(agent), OperatorVersion: m.Version, LogSettings: m.Log, Debug: m.Debug, PauseImage: m.PauseImage,
	}, nil
}

// ConfigurationDigest returns a digest of the desired configuration of all nodes. If the configuration is unknown, the
// digest is empty, and no host has a NodeSpec either.
func (m SpecBuilder) ConfigurationDigest(cluster nodespec.Cluster) string {
	in, err := m.commonInputs(cluster, m.Line.KubernetesFor(cluster.Version))
	if err != nil {
		return ""
	}
	configuration, err := nodespec.Configuration(in)
	if err != nil {
		return ""
	}
	return configuration
}

// BuildForCachedNode returns the NodeSpec of the host, with the pod subnet of the Node, if any.
func (m SpecBuilder) BuildForCachedNode(ctx context.Context, s *scope.Scope) (nodespec.NodeSpec, *result.Result) {
	node, err := m.Nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return nodespec.NodeSpec{}, result.FromAPIError(v1alpha1.ConditionInstalled, "read the Node", err)
	}
	return m.BuildForNode(s, node)
}

// BuildForNode is BuildForCachedNode with a Node that was just read; nil for none.
func (m SpecBuilder) BuildForNode(s *scope.Scope, node *corev1.Node) (nodespec.NodeSpec, *result.Result) {
	spec, err := m.Build(s, node)
	if err != nil {
		return nodespec.NodeSpec{}, result.FromSpecError(err)
	}
	return spec, nil
}

// NeedsUpdate reports whether the host needs a spec other than the last applied one. A spec that cannot be computed
// without the host counts as pending.
func (m SpecBuilder) NeedsUpdate(s *scope.Scope, node *corev1.Node) bool {
	spec, err := m.Build(s, node)
	return err != nil || spec.Digest() != s.Instance.Status.SpecDigest
}

// explainMissing adds to an error of Make about missing programs why the payload lacks the programs for a minor version
// of Kubernetes.
func explainMissing(err error, p *payload.Payload, kubernetes string) error {
	var lacks *nodespec.MissingProgramsError
	if !errors.As(err, &lacks) {
		return err
	}
	var reasons []string
	for _, program := range lacks.Programs {
		if reason := p.Missing(componentOf(program, p), kubernetes); reason != nil && !slices.Contains(reasons, reason.Error()) {
			reasons = append(reasons, reason.Error())
		}
	}
	if len(reasons) == 0 {
		return fmt.Errorf("%w; build the payload again", err)
	}
	return fmt.Errorf("%w; %s", err, strings.Join(reasons, "; "))
}

// componentOf returns the component that contains or should contain the program. An absent component has no list
// of files, but mostly has the name of its program.
func componentOf(program string, p *payload.Payload) string {
	for _, component := range p.Manifest().Components {
		if slices.ContainsFunc(component.Files, func(file payload.File) bool { return file.Path == program }) {
			return component.Name
		}
	}
	return strings.TrimSuffix(program, ".exe")
}

// payloadComponents returns the parts of the payload for the hosts of a cluster, without the agent, which is sent
// separately before the other files.
func payloadComponents(p *payload.Payload, target payload.Target) []nodespec.Component {
	var result []nodespec.Component
	for _, component := range p.Components(target) {
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
