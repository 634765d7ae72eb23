package instance

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// clusterFacts is the phase that takes the facts of the cluster.
type clusterFacts struct {
	cluster ClusterSource
}

// run takes the facts of the cluster. They are watched, so a fault is waited for.
func (p clusterFacts) run(_ context.Context, s *scope.Scope) *result.Result {
	facts, err := p.cluster.Current()
	if err != nil {
		var fault *cluster.Error
		if !errors.As(err, &fault) {
			// An operator that has just started has read nothing yet, which says nothing new about a host that has a status.
			s.Silent = s.Instance.Status.ObservedGeneration != 0
			return &result.Result{
				Condition: v1alpha1.ConditionSupported, Reason: v1alpha1.ReasonInProgress, Outcome: result.Wait, KeepsTurn: true,
				Message: "The cluster's configuration is not known: " + err.Error(),
				Next:    "The operator continues as soon as it has read the cluster's configuration.",
			}
		}
		return &result.Result{
			Condition: v1alpha1.ConditionSupported, Reason: v1alpha1.ReasonClusterConfigurationInvalid,
			Outcome: result.NeedsAdministrator,
			Message: "The cluster's configuration cannot be used: " + err.Error(),
			Next:    "The operator continues as soon as the object in the message is corrected.",
		}
	}
	s.Cluster = facts
	return nil
}
