package state

import (
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
)

// maxRecordBytes is the maximum size of the record of a command before the last line, in bytes. A first
// configuration writes about 30 KiB.
const maxRecordBytes = 64 << 10

// Write appends lines to the record if more is true. Otherwise the lines replace the record of an earlier run.
type Write func(lines []byte, more bool) error

// record keeps the output of a command for support cases. A failed write does not stop the command.
type record struct {
	write   Write
	size    int
	pending []byte // lines not yet written
	begun   bool   // the kept lines belong to this run
	written time.Time
}

// StartRecord starts the record of the command, beginning with its hello line. The caller holds the lock.
func (w *Writer) StartRecord(write Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record = &record{write: write, written: w.hello.Time}
	w.record.addLine(w.hello)
}

// addLine records a line. The last line is written at once, other lines once per second: a first configuration has
// about 100.
func (r *record) addLine(line agentapi.Line) {
	last := false
	switch line.Type {
	case agentapi.TypePlan:
		return // each step has its own line
	case agentapi.TypeResult, agentapi.TypeRebooting:
		result := *line.Result
		result.Facts = nil // larger than the rest, and unrelated to the actions
		line.Result, last = &result, true
	case agentapi.TypeFailure:
		last = true
	}
	encoded, err := line.Encode()
	if err != nil || !last && r.size+len(encoded) > maxRecordBytes {
		return
	}
	r.size += len(encoded) + 1
	r.pending = append(append(r.pending, encoded...), '\n')
	if !last && line.Time.Sub(r.written) < timeouts.ProgressInterval {
		return
	}
	r.written = line.Time
	if r.write(r.pending, r.begun) == nil {
		r.begun, r.pending = true, nil
	}
}
