package state

import (
	"io"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Writer writes the lines that the operator reads. A reader that is gone does not stop the agent: a verb may outlive
// its session.
type Writer struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	out      io.Writer
	progress time.Time // of the last line of progress
	hello    verb.Line
	record   *record // nil while no lines are kept
}

// NewWriter returns a writer to out.
func NewWriter(out io.Writer, clock clock.PassiveClock) *Writer {
	return &Writer{clock: clock, out: out}
}

func (w *Writer) write(line verb.Line) {
	line.Time = w.clock.Now().UTC()
	encoded, err := line.Encode()
	if err != nil {
		return // lines hold nothing that cannot be encoded
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.out.Write(append(encoded, '\n'))
	if line.Type == verb.TypeHello {
		w.hello = line
	}
	if w.record != nil {
		w.record.add(line)
	}
}

// Hello says which agent answers.
func (w *Writer) Hello(hello verb.Hello) { w.write(verb.Line{Type: verb.TypeHello, Hello: &hello}) }

// Plan says what is about to be done.
func (w *Writer) Plan(p plan.Plan) { w.write(verb.Line{Type: verb.TypePlan, Plan: &p}) }

// Step says how a step stands.
func (w *Writer) Step(step verb.Step) { w.write(verb.Line{Type: verb.TypeStep, Step: &step}) }

// Detail tells how far a step is, unless the last such line was only just written.
func (w *Writer) Detail(step verb.Step, detail string) {
	now := w.clock.Now()
	w.mu.Lock()
	early := now.Sub(w.progress) < timeouts.ProgressInterval
	if !early {
		w.progress = now
	}
	w.mu.Unlock()
	if !early {
		step.State, step.Detail = verb.StepProgress, detail
		w.Step(step)
	}
}

// Result is the last line of a verb that has ended.
func (w *Writer) Result(result verb.Result) {
	w.write(verb.Line{Type: verb.TypeResult, Result: withoutContents(result)})
}

// Rebooting is the last line of a verb that restarts the host.
func (w *Writer) Rebooting(result verb.Result) {
	w.write(verb.Line{Type: verb.TypeRebooting, Result: withoutContents(result)})
}

// Failure is the last line of a verb that has failed.
func (w *Writer) Failure(failure *verb.Failure) {
	w.write(verb.Line{Type: verb.TypeFailure, Failure: failure})
}

// withoutContents leaves out what was in files before us, and environment variables, of services too, which may hold a
// proxy's password: the operator needs neither.
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
