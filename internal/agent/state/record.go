package state

import (
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// mostOfARecord is how large the record of a verb becomes before its last line, in bytes. A first configuration has some
// 30 KiB.
const mostOfARecord = 64 << 10

// Write writes lines to where they are kept: at its end, or in place of what an earlier run has left there.
type Write func(lines []byte, more bool) error

// record keeps what a verb has said, for a support case. What cannot be written keeps nobody from working.
type record struct {
	write   Write
	size    int
	pending []byte // lines that are not written yet
	begun   bool   // what is kept is of this run
	written time.Time
}

// Keep has the lines of the verb kept, from its hello on. The caller holds the lock.
func (w *Writer) Keep(write Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record = &record{write: write, written: w.hello.Time}
	w.record.add(w.hello)
}

// add keeps a line. It is written at once if it is the last, else once a second: a first configuration has a hundred.
func (r *record) add(line verb.Line) {
	last := false
	switch line.Type {
	case verb.TypePlan:
		return // each of its steps has a line
	case verb.TypeResult, verb.TypeRebooting:
		result := *line.Result
		result.Facts = nil // they are larger than all the rest, and not about what was done
		line.Result, last = &result, true
	case verb.TypeFailure:
		last = true
	}
	encoded, err := line.Encode()
	if err != nil || !last && r.size+len(encoded) > mostOfARecord {
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
