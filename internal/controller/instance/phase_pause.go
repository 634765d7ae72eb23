package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// checkPaused ends the reconcile of a paused instance.
func checkPaused(_ context.Context, s *scope.Scope) *result.Result {
	if !s.Instance.Spec.Paused {
		return nil
	}
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonPaused, Outcome: result.Wait,
		Message:    "The instance is paused: the operator does not change the host or monitor its node.",
		NextAction: "Set spec.paused to false to resume.",
	}
}
