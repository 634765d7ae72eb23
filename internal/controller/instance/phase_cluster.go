package instance

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

// clusterFactsPhase is the phase that reads the facts of the cluster.
type clusterFactsPhase struct {
	cluster ClusterSource
}

// reconcile reads the facts of the cluster. An error needs no retry, because the facts are watched.
func (p clusterFactsPhase) reconcile(_ context.Context, s *scope.Scope) *result.Result {
	facts, err := p.cluster.Current()
	if err != nil {
		var fault *cluster.Error
		if !errors.As(err, &fault) {
			// A newly started operator has read nothing yet. The status of a host must not change because of
			// that.
			s.SkipStatusWrite = s.Instance.Status.ObservedGeneration != 0
			return &result.Result{
				Condition: v1alpha1.ConditionSupported, Reason: v1alpha1.ReasonInProgress, Outcome: result.Wait, HoldsSlot: true,
				Message:    "The cluster's configuration is not known: " + err.Error(),
				NextAction: "The operator continues as soon as it has read the cluster's configuration.",
			}
		}
		return &result.Result{
			Condition: v1alpha1.ConditionSupported, Reason: v1alpha1.ReasonClusterConfigurationInvalid,
			Outcome:    result.Blocked,
			Message:    "The cluster's configuration cannot be used: " + err.Error(),
			NextAction: "The operator continues as soon as the object in the message is corrected.",
		}
	}
	s.Cluster = facts
	return nil
}
