package link

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/metric"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Run has the agent do a verb and shows its steps in the status while it does.
func (l *Link) Run(ctx context.Context, s *scope.Scope, name verb.Name, arguments ...string) (verb.Line, error) {
	return l.runAt(ctx, s, s.Session.Agent, name, arguments...)
}

// digest is what the SHA-256 of a program looks like. A host's answer may hold anything else.
var digest = regexp.MustCompile("^[0-9a-f]{64}$")

// RunBy has the agent with the SHA-256 that the host has named do a verb: that of a former release, or the operator's
// own if the host names none.
func (l *Link) RunBy(ctx context.Context, s *scope.Scope, sha256 string, name verb.Name) (verb.Line, error) {
	return l.runAt(ctx, s, agentPath(sha256, s.Session.Agent), name)
}

// agentPath returns the path of an agent that the host has named. It is always in the agents' own folder, where only
// administrators write, whatever the host has sent.
func agentPath(sha256, own string) string {
	if !digest.MatchString(sha256) {
		return own
	}
	return nodespec.AgentPath(sha256)
}

func (l *Link) runAt(ctx context.Context, s *scope.Scope, agent string, name verb.Name,
	arguments ...string) (verb.Line, error) {
	last, err := s.Connection.Run(ctx, agent, name, arguments, func(line verb.Line) {
		if line.Type != verb.TypeStep || line.Step == nil {
			return
		}
		step := boundedStep(*line.Step)
		if step.State == verb.StepDone {
			metric.Steps.Of(stepKind(step.Name)).Inc()
			return
		}
		l.Status.Progress(ctx, s, step.Name, step.Index, step.Of, step.Detail)
	})
	if last.Type != verb.TypeRebooting {
		s.Instance.Status.Step = nil // a restart goes on after its verb; no other step does
	}
	if err == nil {
		err = Complete(name, last)
	}
	if last.Result != nil {
		boundResult(last.Result)
	}
	return last, err
}

// Complete reports whether an answer brings what its verb must bring. The host is not trusted to send what the agent
// would.
func Complete(name verb.Name, last verb.Line) error {
	if last.Type == verb.TypeRebooting && slices.Contains([]verb.Name{verb.Apply, verb.Remove, verb.Rollback, verb.Reboot}, name) {
		return nil
	}
	r := last.Result
	ok := r != nil
	switch {
	case !ok:
	case name == verb.Facts, name == verb.Look:
		ok = r.Facts != nil
	case name == verb.Survey:
		ok = r.Facts != nil && r.Survey != nil
	case name == verb.Plan:
		ok = r.Plan != nil
	case name == verb.Apply, name == verb.Rollback, name == verb.Renew:
		ok = r.Facts != nil && r.Plan != nil
	}
	if !ok {
		return fmt.Errorf("the agent's answer to %s is incomplete: the program on the host is not the operator's agent, or is another version of it",
			name)
	}
	return nil
}
