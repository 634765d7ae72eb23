package link

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Inspect brings the agent and asks it for the facts of the host, once for each connection.
func (l *Link) Inspect(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	if s.Session.Facts == nil {
		if o := l.AskFacts(ctx, s); o != nil {
			return l.AnswersWhileRestarting(s, o)
		}
	}
	facts := s.Session.Facts
	if o := l.AwaitRestart(s, facts); o != nil {
		return o
	}
	s.Instance.Status.Host = HostStatus(s, facts)
	return nil
}

// inspect is the step in which the agent is brought and asked.
const inspect = "Inspect"

// AskFacts brings the agent and asks it for the facts of the host.
func (l *Link) AskFacts(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	l.Status.Progress(ctx, s, inspect, 0, 0, "")
	agent, err := l.Payload.Agent()
	if err != nil {
		return obstacle.Payload(err)
	}
	if s.Session.Agent, err = l.BringAgent(ctx, s, agent); err != nil {
		return l.Failed(s, v1alpha1.ConditionReachable, err)
	}
	asked := l.Clock.Now()
	line, err := l.Run(ctx, s, verb.Facts, l.factsArguments(s)...)
	if err != nil {
		return l.Failed(s, v1alpha1.ConditionReachable, err)
	}
	s.Session.Clock = support.ClockReading{Host: line.Result.Facts.Time, Asked: asked, Answered: l.Clock.Now()}
	s.Session.Agent = nodespec.AgentPath(agent.SHA256) // one that has just landed has moved to its own folder
	// These facts have no certificates and no requests for them: only facts that come with a NodeSpec do.
	s.Session.Applied = ""
	l.Learn(s, line.Result.Facts)
	return nil
}

// RefreshClock reads the clock of the host again. After a failure the last reading stays.
func (l *Link) RefreshClock(ctx context.Context, s *scope.Scope) {
	asked := l.Clock.Now()
	if line, err := l.Run(ctx, s, verb.Facts); err == nil {
		s.Session.Clock = support.ClockReading{Host: line.Result.Facts.Time, Asked: asked, Answered: l.Clock.Now()}
	}
}

// Learn keeps the facts that the host has reported.
func (l *Link) Learn(s *scope.Scope, facts *plan.Facts) {
	s.Session.Facts, s.Session.Unanswered = facts, false
	s.Session.KubeletSince = time.Time{}
	if !facts.KubeletStarted.IsZero() {
		s.Session.KubeletSince = l.Clock.Now().Add(-max(facts.Time.Sub(facts.KubeletStarted), 0))
	}
	if facts.Fallback != "" {
		s.Session.Fallback = facts.Fallback
	}
}

// HostStatus returns the status of the host that the scope has a connection to, from its facts.
func HostStatus(s *scope.Scope, facts *plan.Facts) *v1alpha1.HostStatus {
	system, nodeIP := facts.System, ""
	if before := s.Instance.Status.Host; before != nil {
		nodeIP = before.NodeIP
	}
	return &v1alpha1.HostStatus{
		Name: system.HostName, Domain: system.Domain, Product: system.Product, Build: fmt.Sprintf("%s.%d", system.Version, system.Revision),
		MachineID: system.MachineID, BootID: system.BootID, Addresses: system.Addresses,
		NodeIP: nodeIP, ReachedAt: s.Connection.Address(),
	}
}

// sendAgent is the step that an administrator sees while the agent is on its way.
const sendAgent = "SendAgent"

// BringAgent has the agent on the host and returns its path. A program in the agent's own folder is run only if an
// agent of ours has reported the host's facts: that agent has closed the folder to others. Otherwise the program is
// sent to a folder that only administrators can write.
func (l *Link) BringAgent(ctx context.Context, s *scope.Scope, agent payload.File) (string, error) {
	if s.Instance.Status.Host != nil {
		path := nodespec.AgentPath(agent.SHA256)
		if there, err := s.Connection.Has(ctx, path, agent.Size); there || err != nil {
			return path, err
		}
	}
	landing := nodespec.LandingPath(agent.SHA256)
	if there, err := s.Connection.Has(ctx, landing, agent.Size); there || err != nil {
		return landing, err // nothing is sent that other hosts would wait for
	}
	end, err := l.BeginTransfer(ctx, s, sendAgent)
	if err != nil {
		return "", err
	}
	defer end()
	program := remote.Agent{
		SHA256: agent.SHA256, Size: agent.Size, Open: func() (io.ReadCloser, error) { return l.Payload.Open(agent.SHA256) },
	}
	path, _, err := s.Connection.EnsureAgent(ctx, program, l.Status.Transfer(ctx, s, sendAgent))
	return path, err
}

// factsArguments have the agent try the way to the API server, where it is known, and ask the cloud for the machine's
// name, where that is the node's.
func (l *Link) factsArguments(s *scope.Scope) []string {
	var arguments []string
	if nodename.GivenByCloud(s.Cluster.Platform) && s.KeptNodeName() == "" {
		arguments = []string{"--platform", s.Cluster.Platform}
	}
	return append(arguments, APIServerArguments(s.Cluster)...)
}

// APIServerArguments have the agent try the way to the API server; none where it is not known.
func APIServerArguments(cluster nodespec.Cluster) []string {
	server, err := url.Parse(cluster.APIServerInternalURL)
	// An IPv6 address is no plain word for the shells of Windows; Windows nodes reach the API server over IPv4.
	if err != nil || server.Hostname() == "" || strings.Contains(server.Hostname(), ":") {
		return nil
	}
	return []string{"--api-server", "https://" + net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443"))}
}
