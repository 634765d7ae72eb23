package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// pause stops when a user has paused the instance.
func pause(_ context.Context, s *scope.Scope) *obstacle.Obstacle {
	if !s.Instance.Spec.Paused {
		return nil
	}
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonPaused, Outcome: obstacle.Wait,
		Message: "The instance is paused: the operator neither touches the host nor watches over its node.",
		Next:    "Set spec.paused to false to let the operator go on.",
	}
}
