package disruption

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// configuration returns what all nodes are to have now; empty when it is not known.
func (g *PolicyGate) configuration() string {
	if g.Configuration == nil {
		return ""
	}
	return g.Configuration()
}

// goOn makes a disruption that goes on one of this process, and notes the settings that its node is brought to now: the
// nodes that wait for the first one with these settings find it by them.
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
		return nil // it was written
	}
	return book.write(ctx)
}
