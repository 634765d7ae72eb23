package disruption

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// desiredConfiguration returns the desired settings of all nodes; empty if unknown.
func (g *PolicyGate) desiredConfiguration() string {
	if g.Configuration == nil {
		return ""
	}
	return g.Configuration()
}

// resumeDisruption adopts a continuing disruption for this process, and records the settings that are being applied
// to the node. Nodes that wait for the first node with these settings match them against the recorded settings.
func (g *PolicyGate) resumeDisruption(
	ctx context.Context, book *policyUpdate, own *v1alpha1.Disruption, request disruptionpolicy.Request,
) error {
	if brought := disruptionpolicy.ConfigurationOf(request); brought != "" {
		own.ConfigurationDigest = brought
	}
	read := book.policy.ResourceVersion
	if err := g.adoptDisruption(ctx, book, own, request); err != nil {
		return err
	}
	if book.policy.ResourceVersion != read {
		return nil // already written by adoptDisruption
	}
	return book.write(ctx)
}
