package adoption

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// NodesAtAddress returns the Nodes that a legacy operator configured from the list of hosts, and that have
// the address of the connected host. Nodes of other instances are excluded. The address comes from the
// administrator's list, so that no host can choose it. Most clusters have no such Node, and no request is
// sent.
func (a *Adoption) NodesAtAddress(ctx context.Context, s *scope.Scope) ([]corev1.Node, error) {
	if s.Host.Connection == nil {
		return nil, nil
	}
	address := s.Host.Connection.Address()
	cached, err := a.legacyNodes(ctx, s)
	if err != nil {
		return nil, err
	}
	var found []corev1.Node
	for i := range cached {
		if !nodename.HasInternalIP(&cached[i], address) {
			continue
		}
		node, err := a.Nodes.GetByName(ctx, cached[i].Name)
		if err != nil {
			return nil, err
		}
		if node != nil && nodename.IsLegacyOfListed(node) && nodename.HasInternalIP(node, address) {
			found = append(found, *node)
		}
	}
	return found, nil
}
