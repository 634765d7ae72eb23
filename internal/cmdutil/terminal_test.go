package cmdutil

import (
	"bytes"
	"os"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

// screen is an output with the descriptor of another file.
type screen struct {
	bytes.Buffer
	*os.File
}

func (s *screen) Write(p []byte) (int, error) { return s.Buffer.Write(p) }

func TestAccess_NoControlCharactersInTerminalOutput(t *testing.T) {
	pseudo, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("SKIPPED: no terminal can be opened here: %v", err)
	}
	t.Cleanup(func() { _ = pseudo.Close() })
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	const foreign = "\x1b[2Jlog\r\n"
	for name, c := range map[string]struct {
		of       *os.File
		want     string
		terminal bool
	}{"a terminal": {pseudo, "�[2Jlog\n", true}, "a file": {file, foreign, false}} {
		out, errOut := &screen{File: c.of}, &screen{File: c.of}
		a := New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: errOut}, clock.RealClock{})
		for _, stream := range []struct {
			write func([]byte) (int, error)
			got   *screen
		}{{a.Out.Write, out}, {a.ErrOut.Write, errOut}} {
			if _, err := stream.write([]byte(foreign)); err != nil || stream.got.String() != c.want {
				t.Errorf("%s: %q, %v", name, stream.got.String(), err)
			}
			stream.got.Reset()
		}
		is, err := a.ClearScreen()
		if is != c.terminal || err != nil || (out.String() == clearScreen) != c.terminal {
			t.Errorf("%s: it is cleared: %t, %v, by %q", name, is, err, out.String())
		}
		if Printable(a.Out) != a.Out {
			t.Errorf("%s: it is wrapped twice", name)
		}
	}
}
