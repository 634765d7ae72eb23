package hostjobs

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// session is the work of one job over the connection to its host.
type session struct {
	*Handle
	connection *remote.Connection
	payload    *payload.Payload
	agent      string // the path of the agent on the host; empty if unknown
}

// Run runs an agent command.
func (s *session) Run(ctx context.Context, name agentapi.Name, arguments ...string) (agentapi.Line, error) {
	return s.runWithAgent(ctx, s.agent, name, arguments...)
}

// digest matches a SHA-256 digest. The response of a host may contain anything else.
var digest = regexp.MustCompile("^[0-9a-f]{64}$")

// agentPath returns the path of an agent named by the host. The path is always in the agent directory, where only
// administrators can write, regardless of the response.
func agentPath(sha256, own string) string {
	if !digest.MatchString(sha256) {
		return own
	}
	return nodespec.AgentPath(sha256)
}

func (s *session) runWithAgent(ctx context.Context, agent string, name agentapi.Name, arguments ...string) (agentapi.Line, error) {
	last, err := s.connection.Run(ctx, agent, name, arguments, func(line agentapi.Line) {
		if line.Type != agentapi.TypeStep || line.Step == nil {
			return
		}
		step := boundedStep(*line.Step)
		if step.State == agentapi.StepDone {
			metrics.Steps.Of(stepKind(step.Name)).Inc()
			return
		}
		s.Report(Step{Name: step.Name, Detail: step.Detail, Index: step.Index, Total: step.Of})
	})
	if err == nil {
		err = agentapi.CheckComplete(name, last)
	}
	if last.Result != nil {
		boundResult(last.Result)
	}
	return last, err
}

// runChange is Run for an agent command that changes the host.
func (s *session) runChange(ctx context.Context, agent string, name agentapi.Name, arguments ...string) (agentapi.Line, error) {
	if err := s.BeginChange(); err != nil {
		return agentapi.Line{}, err
	}
	return s.runWithAgent(ctx, agent, name, arguments...)
}

// newTransferReporter returns a function that reports the transferred bytes and the transfer rate.
func (s *session) newTransferReporter(step string) func(done, total int64) {
	clock, first := s.runner.clock, int64(-1)
	begin := clock.Now()
	return func(done, total int64) {
		if first < 0 {
			first = done // a resumed upload does not start at zero
		}
		s.Report(Step{Name: step, Detail: formatTransfer(done, total, done-first, clock.Since(begin))})
	}
}

// formatTransfer formats the progress and the rate of a transfer.
func formatTransfer(done, total, sent int64, in time.Duration) string {
	text := fmt.Sprintf("%.1f of %.1f MB", float64(done)/1e6, float64(total)/1e6)
	if in < time.Second {
		return text
	}
	return fmt.Sprintf("%s, %.1f MB/s", text, float64(sent)/1e6/in.Seconds())
}

// transferWaitReporter returns a function that reports a wait for transfers to other hosts.
func (s *session) transferWaitReporter(step string) func() {
	return func() {
		s.Report(Step{Name: step, Detail: "waiting for transfers to other hosts", Waits: true})
	}
}
