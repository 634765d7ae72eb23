package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// preflight stops before anything is changed on a host from which a kubelet could not reach the API server. The host
// itself has tried it: what it resolves and reaches is not what the operator does. A host that has joined before is not
// held up: its kubelet tells.
func preflight(_ context.Context, s *scope.Scope) *obstacle.Obstacle {
	if ref := s.Instance.Status.NodeRef; ref != nil && ref.UID != "" {
		return nil
	}
	o := wayToAPIServer(s.Session.Facts.APIServer)
	if o != nil {
		s.Session.Facts = nil // the next attempt asks the host again
	}
	return o
}

// wayToAPIServer returns the obstacle on the way from a host to the API server; nil when there is none, or nobody has
// looked.
func wayToAPIServer(facts *plan.APIServerFacts) *obstacle.Obstacle {
	if facts == nil || facts.Error == "" {
		return nil
	}
	next := obstacle.Untouched + "Open the way from the host to that TCP port, in firewalls and routes."
	if len(facts.Resolved) == 0 {
		next = obstacle.Untouched +
			"Make the name resolve on the host: in the DNS servers that it asks, or in its hosts file. On vSphere the cluster's domain must be in DNS."
	}
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionPrepared, Reason: v1alpha1.ReasonAPIServerUnreachable,
		Message: "The host cannot reach the API server at " + facts.URL + ", and so no kubelet on it could: " + facts.Error,
		Next:    next,
	}
}
