package state

import (
	"io"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Writer writes the lines for the operator. Write errors are ignored because a command may outlive its session.
type Writer struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	out      io.Writer
	progress time.Time // time of the last progress line
	hello    agentapi.Line
	record   *record // nil if lines are not recorded
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer, clock clock.PassiveClock) *Writer {
	return &Writer{clock: clock, out: out}
}

func (w *Writer) write(line agentapi.Line) {
	line.Time = w.clock.Now().UTC()
	encoded, err := line.Encode()
	if err != nil {
		return // lines contain only encodable values
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.out.Write(append(encoded, '\n'))
	if line.Type == agentapi.TypeHello {
		w.hello = line
	}
	if w.record != nil {
		w.record.addLine(line)
	}
}

// Hello reports the agent and the command.
func (w *Writer) Hello(hello agentapi.Hello) {
	w.write(agentapi.Line{Type: agentapi.TypeHello, Hello: &hello})
}

// Plan reports the planned steps.
func (w *Writer) Plan(p plan.Plan) { w.write(agentapi.Line{Type: agentapi.TypePlan, Plan: &p}) }

// Step reports the state of a step.
func (w *Writer) Step(step agentapi.Step) {
	w.write(agentapi.Line{Type: agentapi.TypeStep, Step: &step})
}

// Detail reports the progress of a step, at most once per progress interval.
func (w *Writer) Detail(step agentapi.Step, detail string) {
	now := w.clock.Now()
	w.mu.Lock()
	early := now.Sub(w.progress) < timeouts.ProgressInterval
	if !early {
		w.progress = now
	}
	w.mu.Unlock()
	if !early {
		step.State, step.Detail = agentapi.StepProgress, detail
		w.Step(step)
	}
}

// Result writes the last line of a completed command.
func (w *Writer) Result(result agentapi.Result) {
	w.write(agentapi.Line{Type: agentapi.TypeResult, Result: withoutContents(result)})
}

// Rebooting writes the last line of a command that restarts the host.
func (w *Writer) Rebooting(result agentapi.Result) {
	w.write(agentapi.Line{Type: agentapi.TypeRebooting, Result: withoutContents(result)})
}

// Failure writes the last line of a failed command.
func (w *Writer) Failure(failure *agentapi.Failure) {
	w.write(agentapi.Line{Type: agentapi.TypeFailure, Failure: failure})
}

// withoutContents removes the original file contents and the environment variables, also of services, which may
// contain the password of a proxy. The operator needs neither.
func withoutContents(result agentapi.Result) *agentapi.Result {
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
