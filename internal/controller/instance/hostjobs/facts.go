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
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// Steps that the status reports.
const (
	// StepInspect installs the agent and reads the facts of the host.
	StepInspect   = "Inspect"
	stepSendAgent = "SendAgent"
)

// FactsRequest is the input of a request for the facts of a host.
type FactsRequest struct {
	// Trusted is true if an agent of this operator has reported the host's facts before. That agent has
	// restricted the agent directory to administrators, so the operator may run a program from there.
	Trusted   bool
	Arguments []string
}

// factsResponse is the response of a host to a request for facts.
type factsResponse struct {
	agent string
	facts *plan.Facts
	clock support.ClockReading
}

// ReadFacts reads the facts of the host once per connection, and installs a missing agent. If the facts are new,
// ReadFacts returns a reading of the host's clock.
func (h *Host) ReadFacts(request FactsRequest) (fresh *support.ClockReading, pending *result.Result, err error) {
	if h.Facts != nil {
		return nil, nil, nil
	}
	agent, err := h.runner.payload.Agent()
	if err != nil {
		return nil, result.FromPayloadError(err), nil
	}
	input := strings.Join(request.Arguments, " ")
	got, pending, err := doOverConnection(h, KindFacts, input, workingResult(v1alpha1.ConditionReachable, StepInspect), nil,
		func(ctx context.Context, s *session) (factsResponse, error) {
			var err error
			if s.agent, err = s.ensureAgent(ctx, agent, request.Trusted); err != nil {
				return factsResponse{}, err
			}
			got, err := s.readFacts(ctx, request.Arguments...)
			got.agent = nodespec.AgentPath(agent.SHA256) // the program moves from the landing directory to the agent directory
			return got, err
		})
	if pending != nil || err != nil {
		return nil, pending, err
	}
	h.Agent, h.Facts = got.agent, got.facts
	// These facts contain no certificates or certificate requests, which are only reported for a NodeSpec.
	h.AppliedDigest = ""
	return &got.clock, nil, nil
}

func (s *session) readFacts(ctx context.Context, arguments ...string) (factsResponse, error) {
	asked := s.runner.clock.Now()
	line, err := s.Run(ctx, agentapi.Facts, arguments...)
	if err != nil {
		return factsResponse{}, err
	}
	return factsResponse{s.agent, line.Result.Facts, support.ClockReading{Host: line.Result.Facts.Time, RequestedAt: asked, RespondedAt: s.runner.clock.Now()}}, nil
}

// ReadClock reads the clock of the host again, and records the reading.
func (h *Host) ReadClock() (support.ClockReading, *result.Result, error) {
	got, pending, err := doOverConnection(h, KindFacts, "the clock only", workingResult(v1alpha1.ConditionReady, StepInspect), nil,
		func(ctx context.Context, s *session) (factsResponse, error) { return s.readFacts(ctx) })
	h.ClockRead = pending == nil
	return got.clock, pending, err
}

// ensureAgent ensures that the agent is on the host, and returns its path. A program in the agent directory is run
// only if trusted is true. Otherwise the program is sent to a directory that only administrators can write to.
func (s *session) ensureAgent(ctx context.Context, agent payload.File, trusted bool) (string, error) {
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
		return landing, err // no transfer, so no slot is needed
	}
	end, err := acquireSlot(ctx, s.runner.slots.agents, s.runner.slots.slow, transferTimeShare, s.runner.clock, s.transferWaitReporter(stepSendAgent))
	if err != nil {
		return "", err
	}
	defer end()
	program := remote.Agent{SHA256: agent.SHA256, Size: agent.Size, Open: s.payload.OpenAgent}
	path, _, err := s.connection.EnsureAgent(ctx, program, s.newTransferReporter(stepSendAgent))
	return path, err
}

// patchAgent sends a patch for a former agent in the agent directory, and has the former agent create the current
// agent. It reports whether the current agent is on the host. If not, the caller sends the complete program.
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
		err = s.connection.Upload(ctx, path, patch.Size, content, s.newTransferReporter(stepSendAgent))
		if err = errors.Join(err, content.Close()); err != nil {
			return false, err
		}
		if _, err := s.runWithAgent(ctx, former, agentapi.Patch, "--patch", path); err != nil {
			log.FromContext(ctx).Info("the agent is sent in full, because its previous version cannot be patched", "reason", err.Error())
			return false, nil
		}
		return s.connection.Has(ctx, nodespec.AgentPath(agent.SHA256), agent.Size)
	}
	return false, nil
}

// APIServerArguments returns the arguments that make the agent check the connection to the API server. It returns
// none if the server is unknown.
func APIServerArguments(cluster nodespec.Cluster) []string {
	server, err := url.Parse(cluster.APIServerInternalURL)
	// An IPv6 address needs quoting in the shells of Windows. Windows nodes reach the API server over IPv4.
	if err != nil || server.Hostname() == "" || strings.Contains(server.Hostname(), ":") {
		return nil
	}
	return []string{"--api-server", "https://" + net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443"))}
}
