package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/agentapi"
)

// answerLimit is the maximum total size of the answer to an agent command in bytes. Package agentapi limits a single
// line.
const answerLimit = 64 << 20

// boundError reports an answer that exceeds the limits of a genuine agent.
type boundError struct{ text string }

func (e *boundError) Error() string { return e.text }

var (
	errLineTooLong   = &boundError{fmt.Sprintf("a line of the agent's response is longer than %d MiB", agentapi.MaxLineBytes>>20)}
	errTooManyValues = &boundError{fmt.Sprintf("a line of the agent's response has more than %d values", agentapi.MaxLineValues)}
	errAnswerTooLong = &boundError{fmt.Sprintf("the agent's response is longer than %d MiB", answerLimit>>20)}
)

// overrunError reports an agent command that exceeded Limits.CommandTimeout.
type overrunError struct{ timeout time.Duration }

func (e *overrunError) Error() string { return fmt.Sprintf("running time exceeded %s", e.timeout) }

// readLine reads up to the next newline and strips the newline. Text before the end of the input counts as a line
// even without a newline.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > agentapi.MaxLineBytes {
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

// lineStart is the prefix of every line of the agent.
var lineStart = []byte(`{"wicd":`)

// decodeLine finds the agent's line in a line of output; ok is false for noise. Terminal sequences of a shell or a
// byte order mark may precede the agent's line.
func decodeLine(data []byte) (line agentapi.Line, ok bool, err error) {
	at := bytes.Index(data, lineStart)
	if at < 0 {
		return agentapi.Line{}, false, nil
	}
	if agentapi.CountValues(data[at:]) > agentapi.MaxLineValues {
		return agentapi.Line{}, false, errTooManyValues
	}
	line, ok = agentapi.Decode(data[at:])
	return line, ok, nil
}
