package sanitize

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTerminal_ControlCharactersNotWritten(t *testing.T) {
	for name, c := range map[string]struct{ foreign, want string }{
		"lines with tabs":                   {"one\ttwo\nthree\n", "one\ttwo\nthree\n"},
		"lines of Windows":                  {"one\r\ntwo\r\n", "one\ntwo\n"},
		"other alphabets":                   {"Dienst läuft, 服务正在运行 ✓\n", "Dienst läuft, 服务正在运行 ✓\n"},
		"a title":                           {"\x1b]0;root@host\x07ls\n", "�]0;root@host�ls\n"},
		"the clipboard":                     {"\x1b]52;c;cm0=\x1b\\", "�]52;c;cm0=�\\"},
		"a line that overwrites another":    {"failed\rpassed\n", "failedpassed\n"},
		"a line that deletes the one above": {"failed\n\x1b[1A\x1b[2Kpassed\n", "failed\n�[1A�[2Kpassed\n"},
		"backspaces":                        {"bad\b\b\bgood", "bad���good"},
		"control characters of 8 bits":      {"\u009b2J\u0085", "�2J�"},
		"bytes that are no characters":      {"\x9b2J\xff", "�2J�"},
		"text in the other direction":       {"a\u202eexe.txt", "a�exe.txt"},
		"spaces that do not break":          {"10\u00a0MB\u2028x", "10 MB x"},
		"zeros":                             {"U\x00T\x00F\x00", "U�T�F�"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PrintableLines(c.foreign); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			var out bytes.Buffer
			terminal := &Terminal{Out: &out}
			for i := range len(c.foreign) { // characters arrive in parts
				if n, err := terminal.Write([]byte(c.foreign[i : i+1])); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			if out.String() != c.want {
				t.Errorf("in single bytes: %q, want %q", out.String(), c.want)
			}
		})
	}
}

// yielding is a terminal that yields to other goroutines during a write.
type yielding struct {
	written          bytes.Buffer
	busy, overlapped atomic.Bool
}

func (y *yielding) Write(p []byte) (int, error) {
	if !y.busy.CompareAndSwap(false, true) {
		y.overlapped.Store(true)
		return len(p), nil
	}
	defer y.busy.Store(false)
	runtime.Gosched()
	return y.written.Write(p)
}

func TestTerminal_ConcurrentLinesNotInterleaved(t *testing.T) {
	const line, writers, lines = "host läuft\n", 8, 500
	out := &yielding{}
	terminal := &Terminal{Out: out}
	var group sync.WaitGroup
	begin := make(chan struct{})
	for range writers {
		group.Go(func() {
			<-begin
			for range lines {
				if _, err := terminal.Write([]byte(line)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	close(begin)
	group.Wait()
	if want := strings.Repeat(line, writers*lines); out.overlapped.Load() || out.written.String() != want {
		t.Errorf("%d bytes were written one after the other, want %d in whole lines", out.written.Len(), len(want))
	}
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestTerminal_WriteErrorReturned(t *testing.T) {
	if _, err := (&Terminal{Out: full{}}).Write([]byte("x")); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

func FuzzTerminal(f *testing.F) {
	f.Add([]byte("one\r\n\x1b[2J\xe6\x9c"), 3)
	f.Fuzz(func(t *testing.T, foreign []byte, at int) {
		var out bytes.Buffer
		terminal := &Terminal{Out: &out}
		at = min(max(at, 0), len(foreign))
		for _, part := range [][]byte{foreign[:at], foreign[at:]} {
			if _, err := terminal.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.HasPrefix(PrintableLines(string(foreign)), out.String()) {
			t.Errorf("%q", out.String())
		}
		for _, r := range out.String() {
			if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) {
				t.Errorf("%q has %q", out.String(), r)
			}
		}
	})
}
