package hostjobs

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Steps that an administrator sees.
const (
	// StepInspect brings the agent and asks it for the facts of the host.
	StepInspect   = "Inspect"
	stepSendAgent = "SendAgent"
)

// FactsRequest is what the agent needs to report the facts of a host.
type FactsRequest struct {
	// Trusted is true if an agent of this operator has reported the host's facts before: it has closed the agents' own folder to
	// others, so that a program there may be run.
	Trusted   bool
	Arguments []string
}

// answer is what a host has reported.
type answer struct {
	agent string
	facts *plan.Facts
	clock support.ClockReading
}

// ReadFacts has the facts of the host, once for each connection. It returns the host's clock if they are new. It brings the agent if
// it is missing.
func (h *Host) ReadFacts(request FactsRequest) (fresh *support.ClockReading, pending *result.Result, err error) {
	if h.Facts != nil {
		return nil, nil, nil
	}
	agent, err := h.runner.payload.Agent()
	if err != nil {
		return nil, result.Payload(err), nil
	}
	input := strings.Join(request.Arguments, " ")
	got, pending, err := over(h, KindFacts, input, working(v1alpha1.ConditionReachable, StepInspect), nil,
		func(ctx context.Context, s *session) (answer, error) {
			var err error
			if s.agent, err = s.bringAgent(ctx, agent, request.Trusted); err != nil {
				return answer{}, err
			}
			got, err := s.facts(ctx, request.Arguments...)
			got.agent = nodespec.AgentPath(agent.SHA256) // one that has just landed has moved to its own folder
			return got, err
		})
	if pending != nil || err != nil {
		return nil, pending, err
	}
	h.Agent, h.Facts = got.agent, got.facts
	// These facts have no certificates and no requests for them: only facts that come with a NodeSpec do.
	h.Applied = ""
	return &got.clock, nil, nil
}

func (s *session) facts(ctx context.Context, arguments ...string) (answer, error) {
	asked := s.runner.clock.Now()
	line, err := s.Run(ctx, verb.Facts, arguments...)
	if err != nil {
		return answer{}, err
	}
	return answer{s.agent, line.Result.Facts, support.ClockReading{Host: line.Result.Facts.Time, Asked: asked, Answered: s.runner.clock.Now()}}, nil
}

// ReadClock reads the clock of the host again, and notes that it did.
func (h *Host) ReadClock() (support.ClockReading, *result.Result, error) {
	got, pending, err := over(h, KindFacts, "the clock only", working(v1alpha1.ConditionReady, StepInspect), nil,
		func(ctx context.Context, s *session) (answer, error) { return s.facts(ctx) })
	h.ClockRead = pending == nil
	return got.clock, pending, err
}

// bringAgent has the agent on the host and returns its path. A program in the agent's own folder is run only if that is trusted.
// Otherwise the program is sent to a folder that only administrators can write.
func (s *session) bringAgent(ctx context.Context, agent payload.File, trusted bool) (string, error) {
	if trusted {
		path := nodespec.AgentPath(agent.SHA256)
		if there, err := s.connection.Has(ctx, path, agent.Size); there || err != nil {
			return path, err
		}
		if there, err := s.patchAgent(ctx, agent); there || err != nil {
			return path, err
		}
	}
	landing := nodespec.LandingPath(agent.SHA256)
	if there, err := s.connection.Has(ctx, landing, agent.Size); there || err != nil {
		return landing, err // nothing is sent that other hosts would wait for
	}
	end, err := borrow(ctx, s.runner.slots.agents, s.runner.slots.slow, transferShare, s.runner.clock, s.waitsForOthers(stepSendAgent))
	if err != nil {
		return "", err
	}
	defer end()
	program := remote.Agent{SHA256: agent.SHA256, Size: agent.Size, Open: s.payload.OpenAgent}
	path, _, err := s.connection.EnsureAgent(ctx, program, s.transfer(stepSendAgent))
	return path, err
}

// patchAgent sends a patch for a former agent in the agents' own folder, which creates the present agent from it. It reports
// whether the present agent is on the host. Otherwise, the caller sends the whole program.
func (s *session) patchAgent(ctx context.Context, agent payload.File) (there bool, err error) {
	for _, patch := range s.payload.Patches(agent.SHA256) {
		former := nodespec.AgentPath(patch.From)
		if there, err := s.connection.Exists(ctx, former); err != nil {
			return false, err
		} else if !there {
			continue
		}
		content, err := s.payload.Open(patch.SHA256)
		if err != nil {
			return false, err
		}
		path := nodespec.InboxPatch(patch.SHA256)
		err = s.connection.Upload(ctx, path, patch.Size, content, s.transfer(stepSendAgent))
		if err = errors.Join(err, content.Close()); err != nil {
			return false, err
		}
		if _, err := s.runAt(ctx, former, verb.Patch, "--patch", path); err != nil {
			log.FromContext(ctx).Info("the agent is sent whole, because its former version cannot be patched", "reason", err.Error())
			return false, nil
		}
		return s.connection.Has(ctx, nodespec.AgentPath(agent.SHA256), agent.Size)
	}
	return false, nil
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
