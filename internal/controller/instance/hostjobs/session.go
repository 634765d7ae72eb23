package hostjobs

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/windows-machine-config/wmco/internal/controller/metric"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// session is the work of one job over the connection to its host.
type session struct {
	*Handle
	connection *remote.Connection
	payload    *payload.Payload
	agent      string // the path of the agent on the host; empty if it was not looked for
}

// Run has the agent do a verb.
func (s *session) Run(ctx context.Context, name verb.Name, arguments ...string) (verb.Line, error) {
	return s.runAt(ctx, s.agent, name, arguments...)
}

// digest is what the SHA-256 of a program looks like. A host's answer may hold anything else.
var digest = regexp.MustCompile("^[0-9a-f]{64}$")

// agentPath returns the path of an agent that the host has named. It is always in the agents' own folder, where only
// administrators write, whatever the host has sent.
func agentPath(sha256, own string) string {
	if !digest.MatchString(sha256) {
		return own
	}
	return nodespec.AgentPath(sha256)
}

func (s *session) runAt(ctx context.Context, agent string, name verb.Name, arguments ...string) (verb.Line, error) {
	last, err := s.connection.Run(ctx, agent, name, arguments, func(line verb.Line) {
		if line.Type != verb.TypeStep || line.Step == nil {
			return
		}
		step := boundedStep(*line.Step)
		if step.State == verb.StepDone {
			metric.Steps.Of(stepKind(step.Name)).Inc()
			return
		}
		s.Report(Step{Name: step.Name, Detail: step.Detail, Index: step.Index, Of: step.Of})
	})
	if err == nil {
		err = verb.Complete(name, last)
	}
	if last.Result != nil {
		boundResult(last.Result)
	}
	return last, err
}

// change is Run for a verb that changes the host.
func (s *session) change(ctx context.Context, agent string, name verb.Name, arguments ...string) (verb.Line, error) {
	if err := s.Changing(); err != nil {
		return verb.Line{}, err
	}
	return s.runAt(ctx, agent, name, arguments...)
}

// transfer reports bytes on their way, and how fast they go.
func (s *session) transfer(step string) func(done, total int64) {
	clock, first := s.runner.clock, int64(-1)
	begin := clock.Now()
	return func(done, total int64) {
		if first < 0 {
			first = done // an upload that goes on where it was cut does not begin at zero
		}
		s.Report(Step{Name: step, Detail: transferred(done, total, done-first, clock.Since(begin))})
	}
}

// transferred says how far a transfer is that has sent some bytes in some time.
func transferred(done, total, sent int64, in time.Duration) string {
	text := fmt.Sprintf("%.1f of %.1f MB", float64(done)/1e6, float64(total)/1e6)
	if in < time.Second {
		return text
	}
	return fmt.Sprintf("%s, %.1f MB/s", text, float64(sent)/1e6/in.Seconds())
}

// waitsForOthers reports that the host must wait until others were sent programs.
func (s *session) waitsForOthers(step string) func() {
	return func() {
		s.Report(Step{Name: step, Detail: "waits until other hosts have got their programs", Waits: true})
	}
}
