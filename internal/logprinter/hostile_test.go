package logprinter_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/nodelogs"
)

func TestViewer_RepeatedFullResponsePrintedOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			_, _ = io.WriteString(w, `<a href="kubelet.log">kubelet.log</a>`)
			return
		}
		_, _ = io.WriteString(w, "one\ntwo\n") // with status 200, for any requested range
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/logs/")
	if err != nil {
		t.Fatal(err)
	}
	on := clocktesting.NewFakeClock(time.Now())
	c, out := newViewer(on, -1)
	c.Follow = true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Show(ctx, nodelogs.Files{Client: server.Client(), Base: base}, "kubelet") }()
	const warning = "Warning: the kubelet did not send the requested part of the file"
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(out.readText(), warning); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) || strings.Count(out.readText(), "one\n") > 1 {
			t.Fatalf("it printed %q", out.readText())
		}
		if on.HasWaiters() {
			on.Step(time.Second)
		}
	}
	cancel()
	if err := <-ended; err != nil || strings.Count(out.readText(), "one\n") != 1 {
		t.Errorf("it printed %q, and ended with %v", out.readText(), err)
	}
}

// shrinking is a log that becomes shorter after each complete read.
type shrinking struct {
	logprinter.Source

	reads int
}

func (s *shrinking) From(_ context.Context, _ string, offset int64) (logprinter.Part, error) {
	if s.reads++; offset > 0 {
		return logprinter.Part{}, nil
	}
	return logprinter.Part{Body: []byte("one\n"), Size: 8}, nil
}

func TestViewer_RepeatedlyShrinkingLogIsError(t *testing.T) {
	n := newNode(t)
	n.write(t, "kubelet/kubelet.log", "one\n")
	c, out := newViewer(clock.RealClock{}, -1)
	source := &shrinking{Source: n.Files}
	err := c.Show(t.Context(), source, "kubelet")
	if err == nil || !strings.Contains(err.Error(), "truncated more than once") || source.reads > 10 {
		t.Errorf("after %d reads: %v", source.reads, err)
	}
	if got := strings.Count(out.readText(), "one\n"); got > 2 {
		t.Errorf("it was printed %d times", got)
	}
}

func TestViewer_ServiceNamesWithoutControlCharacters(t *testing.T) {
	n := newNode(t)
	n.write(t, "kube\x1b[2Jlet\n/kubelet.log", "")
	c, out := newViewer(clock.RealClock{}, 10)
	if err := c.Services(t.Context(), n.Files); err != nil || out.readText() != "kube[2Jlet\n" {
		t.Errorf("%q, %v", out.readText(), err)
	}
}
