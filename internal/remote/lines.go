package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/verb"
)

// What a host may send as the answer to one verb. Facts of a host with many files take some 100 KiB and a few thousand
// values, and a run of an hour some more bytes.
const (
	// lineLimit bounds one line, in bytes.
	lineLimit = 2 << 20
	// valueLimit bounds how many values a line has: what is short in JSON takes much memory.
	valueLimit = 20_000
	// answerLimit bounds all lines together, in bytes.
	answerLimit = 64 << 20
)

// boundError is an answer that goes beyond what any agent says.
type boundError struct{ text string }

func (e *boundError) Error() string { return e.text }

var (
	errLineTooLong   = &boundError{fmt.Sprintf("a line of the agent's answer is longer than %d MiB", lineLimit>>20)}
	errTooManyValues = &boundError{fmt.Sprintf("a line of the agent's answer has more than %d values", valueLimit)}
	errAnswerTooLong = &boundError{fmt.Sprintf("the agent's answer is longer than %d MiB", answerLimit>>20)}
)

// overrunError is a verb that goes on for longer than any does.
type overrunError struct{ limit time.Duration }

func (e *overrunError) Error() string { return fmt.Sprintf("it has taken %s", e.limit) }

// readLine reads up to the next newline, without it. What stands before the end of the input without a newline is a
// line too.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > lineLimit {
			return nil, errLineTooLong
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(line) == 0:
			return nil, err
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}

// lineStart is how every line of the agent begins.
var lineStart = []byte(`{"wicd":`)

// decodeLine finds the agent's line in a line of output; ok is false when it is noise. Terminal sequences of a shell or
// a byte order mark may stand before it.
func decodeLine(data []byte) (line verb.Line, ok bool, err error) {
	at := bytes.Index(data, lineStart)
	if at < 0 {
		return verb.Line{}, false, nil
	}
	if values(data[at:]) > valueLimit {
		return verb.Line{}, false, errTooManyValues
	}
	line, ok = verb.Decode(data[at:])
	return line, ok, nil
}

// values is at least how many members and elements a JSON text has.
func values(data []byte) int {
	return bytes.Count(data, []byte(",")) + bytes.Count(data, []byte(":"))
}
