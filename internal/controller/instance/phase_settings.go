package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// settingsPhase is the phase that reads the settings of the disruption policy.
type settingsPhase struct {
	gate disruption.Gate
}

// reconcile reads the settings of the disruption policy that phases need.
func (p settingsPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	settings, err := p.gate.Settings(ctx)
	if err != nil {
		// Faults of the policy are reported in the status of the policy, and by the gate when a slot is
		// requested.
		settings, _ = disruptionpolicy.Parse(v1alpha1.WindowsDisruptionPolicySpec{})
	}
	s.Settings = settings
	return nil
}
