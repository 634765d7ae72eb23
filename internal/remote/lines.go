package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/verb"
)

// lineLimit bounds one line of an answer, in bytes. Facts of a host with many files take some 100 KiB.
const lineLimit = 16 << 20

var errLineTooLong = fmt.Errorf("a line of the agent's answer is longer than %d MiB", lineLimit>>20)

// readLine reads up to the next newline, without it. What stands before the end of the input without a newline is a line too.
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

// decodeLine finds the agent's line in a line of output; ok is false when it is noise. Terminal sequences of a shell or a byte
// order mark may stand before it.
func decodeLine(data []byte) (line verb.Line, ok bool) {
	at := bytes.Index(data, lineStart)
	if at < 0 {
		return verb.Line{}, false
	}
	return verb.Decode(data[at:])
}
