package disruption

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// configuration returns the desired settings of all nodes; empty if unknown.
func (g *PolicyGate) configuration() string {
	if g.Configuration == nil {
		return ""
	}
	return g.Configuration()
}

// goOn adopts a continuing disruption for this process, and records the settings that are being applied to the
// node. Nodes that wait for the first node with these settings match them against the recorded settings.
func (g *PolicyGate) goOn(
	ctx context.Context, book *book, own *v1alpha1.Disruption, request disruptionpolicy.Request,
) error {
	if brought := disruptionpolicy.ConfigurationOf(request); brought != "" {
		own.ConfigurationDigest = brought
	}
	read := book.policy.ResourceVersion
	if err := g.takeOver(ctx, book, own, request); err != nil {
		return err
	}
	if book.policy.ResourceVersion != read {
		return nil // already written by takeOver
	}
	return book.write(ctx)
}
