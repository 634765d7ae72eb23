package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// inspectHost is the phase that reads the facts of the host, once per connection.
func inspectHost(_ context.Context, s *scope.Scope) *result.Result {
	fresh, pending, err := s.Host.ReadFacts(hostjobs.FactsRequest{Trusted: s.Instance.Status.Host != nil, Arguments: factsArguments(s)})
	switch {
	case pending != nil:
		return pending
	case err != nil:
		return s.AwaitAgentReturn(s.HandleFailure(v1alpha1.ConditionReachable, err))
	case fresh != nil:
		s.Session.Clock = *fresh
		recordFacts(s, s.Host.Facts)
	}
	if o := s.AwaitRestart(); o != nil {
		return o
	}
	s.Instance.Status.Host = hostStatus(s, s.Host.Facts)
	return nil
}

// recordFacts records the facts reported by the host.
func recordFacts(s *scope.Scope, facts *plan.Facts) {
	s.Host.Facts, s.Session.Unresponsive = facts, false
	s.Session.KubeletSince = time.Time{}
	if !facts.KubeletStarted.IsZero() {
		s.Session.KubeletSince = s.Clock.Now().Add(-max(facts.Time.Sub(facts.KubeletStarted), 0))
		if absent := s.Session.KubeletAbsent; s.Session.KubeletSince.Before(absent) { // the host's clock was set in the meantime
			s.Session.KubeletSince = absent
		}
	}
	if facts.RollbackTarget != "" {
		s.Session.RollbackTarget = facts.RollbackTarget
	}
}

// hostStatus returns the status of the connected host from its facts.
func hostStatus(s *scope.Scope, facts *plan.Facts) *v1alpha1.HostStatus {
	system, nodeIP := facts.System, ""
	if before := s.Instance.Status.Host; before != nil {
		nodeIP = before.NodeIP
	}
	return &v1alpha1.HostStatus{
		Name: system.HostName, Domain: system.Domain, Product: system.Product, Build: fmt.Sprintf("%s.%d", system.Version, system.Revision),
		MachineID: system.MachineID, BootID: system.BootID, Addresses: system.Addresses,
		NodeIP: nodeIP, LastReachedAddress: s.Host.Connection.Address(),
	}
}

// factsArguments returns the arguments that make the agent check the connection to the API server, if the server is
// known. They also make the agent read the machine's name from the cloud, if the cloud determines the node name.
func factsArguments(s *scope.Scope) []string {
	var arguments []string
	if nodename.IsNamedByCloud(s.Cluster.Platform) && s.ExistingNodeName() == "" {
		arguments = []string{"--platform", s.Cluster.Platform}
	}
	return append(arguments, hostjobs.APIServerArguments(s.Cluster)...)
}
