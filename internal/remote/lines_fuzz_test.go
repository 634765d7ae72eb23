package remote

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Each line of a host is noise, exceeds a limit, or is unchanged after decoding and encoding.
func FuzzLinesOfAHost(f *testing.F) {
	for _, line := range []agentapi.Line{
		{Type: agentapi.TypeResult, Result: &agentapi.Result{Facts: &plan.Facts{}}},
		{Type: agentapi.TypeFailure, Failure: &agentapi.Failure{Step: "Reboot", Message: "refused"}},
	} {
		text, err := line.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(append([]byte("\xff\xfe\x1b[2J"), append(text, "\r\nnoise\n"...)...))
		f.Add(text[:len(text)/2])
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		for r := bufio.NewReader(bytes.NewReader(input)); ; {
			text, err := readLine(r)
			if err != nil {
				return
			}
			line, ok, err := decodeLine(text)
			if err != nil || !ok {
				continue
			}
			again, err := line.Encode()
			if err != nil {
				t.Fatalf("%q is a line that cannot be written: %v", text, err)
			}
			if _, ok := agentapi.Decode(again); !ok {
				t.Fatalf("%q reads as noise when it is written again: %q", text, again)
			}
		}
	})
}
