package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/verb"
)

// answerLimit bounds all lines of the answer to one verb together, in bytes. What one line may have, verb says.
const answerLimit = 64 << 20

// boundError is an answer that goes beyond what any agent says.
type boundError struct{ text string }

func (e *boundError) Error() string { return e.text }

var (
	errLineTooLong   = &boundError{fmt.Sprintf("a line of the agent's answer is longer than %d MiB", verb.MostBytes>>20)}
	errTooManyValues = &boundError{fmt.Sprintf("a line of the agent's answer has more than %d values", verb.MostValues)}
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
		if len(line)+len(part) > verb.MostBytes {
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
	if verb.Values(data[at:]) > verb.MostValues {
		return verb.Line{}, false, errTooManyValues
	}
	line, ok = verb.Decode(data[at:])
	return line, ok, nil
}
