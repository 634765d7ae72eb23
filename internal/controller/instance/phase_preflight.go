package instance

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// checkWayToAPIServer stops before anything is changed on a host from which a kubelet could not reach the API server. The host itself has
// tried it: what it resolves and reaches is not what the operator does. A host that has joined before is not held up: its kubelet tells.
func (r *Reconciler) checkWayToAPIServer(_ context.Context, s *scope) *obstacle {
	if ref := s.instance.Status.NodeRef; ref != nil && ref.UID != "" {
		return nil
	}
	o := wayToAPIServer(s.session.facts.APIServer)
	if o != nil {
		s.session.facts = nil // the next attempt asks the host again
	}
	return o
}

// wayToAPIServer is the obstacle on the way from a host to the API server; nil when there is none, or nobody has looked.
func wayToAPIServer(facts *plan.APIServerFacts) *obstacle {
	if facts == nil || facts.Error == "" {
		return nil
	}
	next := untouched + "Open the way from the host to that TCP port, in firewalls and routes."
	if len(facts.Resolved) == 0 {
		next = untouched + "Make the name resolve on the host: in the DNS servers that it asks, or in its hosts file. On vSphere the cluster's domain must be in DNS."
	}
	return &obstacle{
		condition: v1alpha1.ConditionPrepared, reason: v1alpha1.ReasonAPIServerUnreachable,
		message: "The host cannot reach the API server at " + facts.URL + ", and so no kubelet on it could: " + facts.Error, next: next,
	}
}

// factsArguments have the agent try the way to the API server, where it is known, and ask the cloud for the machine's name, where that is
// the node's.
func (s *scope) factsArguments() []string {
	var arguments []string
	if nodename.GivenByCloud(s.cluster.Platform) && s.keptNodeName() == "" {
		arguments = []string{"--platform", s.cluster.Platform}
	}
	server, err := url.Parse(s.cluster.APIServerInternalURL)
	// An IPv6 address is no plain word for the shells of Windows; Windows nodes reach the API server over IPv4.
	if err != nil || server.Hostname() == "" || strings.Contains(server.Hostname(), ":") {
		return arguments
	}
	return append(arguments, "--api-server", "https://"+net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443")))
}
