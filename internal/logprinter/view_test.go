package logprinter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/nodelogs"
)

// node has log files, and serves them like a kubelet.
type node struct {
	directory string
	nodelogs.Files
}

func newNode(t *testing.T) node {
	t.Helper()
	dir := t.TempDir()
	server := httptest.NewServer(http.StripPrefix("/logs/", http.FileServer(http.Dir(dir))))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/logs/")
	if err != nil {
		t.Fatal(err)
	}
	return node{directory: dir, Files: nodelogs.Files{Client: server.Client(), Base: base}}
}

func (n node) write(t *testing.T, path, content string) {
	t.Helper()
	path = filepath.Join(n.directory, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newViewer(clock clock.Clock, tail int) (*logprinter.Viewer, *output) {
	out := &output{}
	return &logprinter.Viewer{Out: out, ErrOut: out, Clock: clock, Tail: tail}, out
}

// output can be read and written concurrently.
type output struct {
	mu sync.Mutex
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.Write(p)
}

func (o *output) readText() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.String()
}

func newLines(from, to int) string {
	var text strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&text, "line %d %s\n", i, strings.Repeat("x", i%700)) // some exceed the first guess
	}
	return text.String()
}

func TestViewer_TailPrintsLastLines(t *testing.T) {
	n := newNode(t)
	n.write(t, "kubelet/kubelet.log", newLines(1, 1500))
	n.write(t, "short/short.log", "one\ntwo")
	n.write(t, "empty/empty.log", "")
	for name, test := range map[string]struct {
		file string // and service
		tail int
		want string
	}{
		"so many lines as are asked for": {"kubelet", 700, newLines(801, 1500)},
		"one":                            {"kubelet", 1, newLines(1500, 1500)},
		"none":                           {"kubelet", 0, ""},
		"all":                            {"kubelet", -1, newLines(1, 1500)},
		"more than there are":            {"kubelet", 5000, newLines(1, 1500)},
		"a last line that has no end":    {"short", 1, "two"},
		"an empty log":                   {"empty", 10, ""},
		"all of an empty log":            {"empty", -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, out := newViewer(clock.RealClock{}, test.tail)
			if err := c.Show(t.Context(), n.Files, test.file); err != nil {
				t.Fatal(err)
			}
			if out.readText() != test.want {
				t.Errorf("%d bytes, want %d", out.Len(), len(test.want))
			}
		})
	}
}

func TestViewer_FollowContinuesAfterRotation(t *testing.T) {
	n := newNode(t)
	n.write(t, "kubelet/kubelet.log", "one\n")
	on := clocktesting.NewFakeClock(time.Now())
	c, out := newViewer(on, 10)
	c.Follow = true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Show(ctx, n.Files, "kubelet") }()
	reads := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); out.readText() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("it printed %q, want %q", out.readText(), want)
			}
			if on.HasWaiters() {
				on.Step(time.Second)
			}
		}
	}
	reads("one\n")
	n.write(t, "kubelet/kubelet.log", "one\ntwo\n")
	reads("one\ntwo\n")
	n.write(t, "kubelet/kubelet.log", "new\n")
	reads("one\ntwo\nnew\n")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// failing is a source that fails to continue a log: each read returns the next error, and then the last error.
type failing struct {
	logprinter.Source

	errs []error
}

func (f *failing) From(context.Context, string, int64) (logprinter.Part, error) {
	err := f.errs[0]
	f.errs = f.errs[min(1, len(f.errs)-1):]
	return logprinter.Part{Size: 4, From: 4}, err
}

func TestViewer_FollowWarnsOnceEndsWithLog(t *testing.T) {
	n := newNode(t)
	n.write(t, "kubelet/kubelet.log", "one\n")
	on := clocktesting.NewFakeClock(time.Now())
	c, out := newViewer(on, 10)
	c.Follow = true
	restarts, errGone := errors.New("the kubelet does not answer"), fmt.Errorf("host 10.0.0.1: %w", logprinter.ErrGone)
	source := &failing{n.Files, []error{restarts, restarts, restarts, nil, restarts, errGone}}
	ended := make(chan error, 1)
	go func() { ended <- c.Show(t.Context(), source, "kubelet") }()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		select {
		case err := <-ended:
			if !errors.Is(err, logprinter.ErrGone) {
				t.Errorf("it has ended with %v", err)
			}
			if want := "one\n" + strings.Repeat("Warning: the kubelet does not answer\n", 2); out.readText() != want {
				t.Errorf("it has printed %q, want %q", out.readText(), want)
			}
			return
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("it goes on, and has printed %q", out.readText())
		}
		if on.HasWaiters() {
			on.Step(time.Second)
		}
	}
}

func TestViewer_ListsServicesWithLog(t *testing.T) {
	n := newNode(t)
	n.write(t, "kubelet/kubelet.log", "")
	n.write(t, "a b/a b.log", "")
	n.write(t, "file", "")
	c, out := newViewer(clock.RealClock{}, 10)
	if err := c.Services(t.Context(), n.Files); err != nil || out.readText() != "a b\nkubelet\n" {
		t.Errorf("%q, %v", out.readText(), err)
	}
}

func TestViewer_MissingLogIsError(t *testing.T) {
	n := newNode(t)
	n.write(t, "odd/other.txt", "")
	for service, want := range map[string]string{
		"nosuch": "service nosuch has no log",
		"odd":    "the log directory contains only other.txt",
		"../etc": "service ../etc has no log",
	} {
		c, _ := newViewer(clock.RealClock{}, 10)
		if err := c.Show(t.Context(), n.Files, service); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", service, err, want)
		}
	}
}

func TestViewer_APIServerStatusIsError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","message":"nodes \"n\" is forbidden","code":403}`)
	}))
	defer server.Close()
	base, err := url.Parse(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := newViewer(clock.RealClock{}, 10)
	err = c.Services(t.Context(), nodelogs.Files{Client: server.Client(), Base: base})
	if err == nil || err.Error() != `403 Forbidden: nodes "n" is forbidden` {
		t.Errorf("%v", err)
	}
}

func TestViewer_SinceReadsBackToStartTime(t *testing.T) {
	n := newNode(t)
	now := time.Now()
	var log strings.Builder
	for age := 5000; age > 0; age-- {
		log.WriteString("time=" + now.Add(-time.Duration(age)*time.Second).UTC().Format(time.RFC3339) + " msg=" + strings.Repeat("x", 100) + "\n")
	}
	n.write(t, "wicd/wicd.log", log.String())
	for tail, want := range map[int]int{-1: 3600, 10: 10} {
		c, out := newViewer(clocktesting.NewFakeClock(now), tail)
		c.Since = time.Hour
		if err := c.Show(t.Context(), n.Files, "wicd"); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.readText(), "\n"); got < want-1 || got > want+1 {
			t.Errorf("--tail=%d: %d lines, want %d", tail, got, want)
		}
	}
	c, _ := newViewer(clock.RealClock{}, -1)
	c.Since = time.Hour
	n.write(t, "odd/odd.log", "what\n")
	if err := c.Show(t.Context(), n.Files, "odd"); err == nil || !strings.Contains(err.Error(), "odd/odd.log: the log has no lines with a recognized time") {
		t.Error(err)
	}
}
