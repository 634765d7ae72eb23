package testenv

import (
	"bytes"
	"io"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// outputFilter replaces each line of the agent's output with the line of an attacker in control of the host.
type outputFilter func(line []byte) []byte

// TamperOutput makes a host hostile until honest is called. change receives each line that the agent would send over
// SSH, without the line end, and the host sends exactly the result of change. The last call for a host counts.
func (r *Environment) TamperOutput(h *Host, change func(line []byte) []byte) (honest func()) {
	machine := h.Machine()
	r.outputFilters.Store(machine, outputFilter(change))
	return func() { r.outputFilters.Delete(machine) }
}

// TamperFacts is TamperOutput within the agent's protocol: lie changes the facts that the host reports.
func (r *Environment) TamperFacts(h *Host, lie func(facts *plan.Facts)) (honest func()) {
	return r.TamperOutput(h, func(text []byte) []byte {
		line, ok := agentapi.Decode(text)
		if ok && line.Result != nil && line.Result.Facts != nil {
			lie(line.Result.Facts)
			if changed, err := line.Encode(); err == nil {
				text = changed
			}
		}
		return append(text, '\n')
	})
}

// agentOutput returns the writer for an agent's output.
func (r *Environment) agentOutput(p *fake.Process) io.Writer {
	if p.Service != "" {
		return p.Stdout // no reader
	}
	return &filteredOutput{env: r, process: p}
}

type filteredOutput struct {
	env     *Environment
	process *fake.Process
	line    []byte // the incomplete line
}

// Write implements io.Writer.
func (m *filteredOutput) Write(data []byte) (int, error) {
	value, _ := m.env.outputFilters.Load(m.process.Machine)
	change, hostile := value.(outputFilter)
	if !hostile {
		return m.process.Stdout.Write(data)
	}
	m.line = append(m.line, data...)
	for {
		line, rest, complete := bytes.Cut(m.line, []byte("\n"))
		if !complete {
			return len(data), nil
		}
		m.line = rest
		// An attacker on the host does not care whether the operator still reads.
		_, _ = m.process.Stdout.Write(change(bytes.Clone(line)))
	}
}
