package agent

import (
	"io"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// answer writes the lines that the operator reads. A reader that is gone does not stop the agent: a verb may outlive its session.
type answer struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	out      io.Writer
	progress time.Time // of the last line of progress
}

func (a *answer) write(line verb.Line) {
	line.Time = a.clock.Now().UTC()
	encoded, err := line.Encode()
	if err != nil {
		return // lines hold nothing that cannot be encoded
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.out.Write(append(encoded, '\n'))
}

func (a *answer) hello(hello verb.Hello) { a.write(verb.Line{Type: verb.TypeHello, Hello: &hello}) }

func (a *answer) plan(p plan.Plan) { a.write(verb.Line{Type: verb.TypePlan, Plan: &p}) }

func (a *answer) step(step verb.Step) { a.write(verb.Line{Type: verb.TypeStep, Step: &step}) }

// detail tells how far a step is, unless the last such line was only just written.
func (a *answer) detail(step verb.Step, detail string) {
	now := a.clock.Now()
	a.mu.Lock()
	early := now.Sub(a.progress) < ProgressInterval
	if !early {
		a.progress = now
	}
	a.mu.Unlock()
	if !early {
		step.State, step.Detail = verb.StepProgress, detail
		a.step(step)
	}
}

func (a *answer) result(result verb.Result) {
	a.write(verb.Line{Type: verb.TypeResult, Result: withoutContents(result)})
}

func (a *answer) rebooting(result verb.Result) {
	a.write(verb.Line{Type: verb.TypeRebooting, Result: withoutContents(result)})
}

func (a *answer) failure(failure *verb.Failure) {
	a.write(verb.Line{Type: verb.TypeFailure, Failure: failure})
}

// withoutContents leaves out what was in files before us, and environment variables, of services too, which may hold a proxy's password: the
// operator needs neither.
func withoutContents(result verb.Result) *verb.Result {
	if result.Facts == nil {
		return &result
	}
	facts := *result.Facts
	facts.Environment, facts.Ledger.Environment = nil, nil
	facts.Services, facts.Ledger.Services = maps.Clone(facts.Services), maps.Clone(facts.Ledger.Services)
	for name, service := range facts.Services {
		service.Environment = nil
		facts.Services[name] = service
	}
	for name, before := range facts.Ledger.Services {
		if before != nil {
			service := *before
			service.Environment = nil
			facts.Ledger.Services[name] = &service
		}
	}
	facts.Ledger.Paths = maps.Clone(facts.Ledger.Paths)
	for path, before := range facts.Ledger.Paths {
		before.Content = nil
		facts.Ledger.Paths[path] = before
	}
	result.Facts = &facts
	return &result
}
