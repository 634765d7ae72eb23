package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// settings is the phase that takes the settings of the gate.
type settings struct {
	gate disruption.Gate
}

// run takes the settings of the gate that phases need.
func (p settings) run(ctx context.Context, s *scope.Scope) *result.Result {
	settings, err := p.gate.Settings(ctx)
	if err != nil {
		// The policy's status reports its faults, and so does the gate where it matters.
		settings, _ = disruptionpolicy.Parse(v1alpha1.WindowsDisruptionPolicySpec{})
	}
	s.Settings = settings
	return nil
}
