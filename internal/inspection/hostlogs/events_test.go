package hostlogs

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/remote"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// newEvent returns an event of a log, second seconds after noon.
func newEvent(log string, second int, level host.EventLevel, source string, id uint32, message string) agentapi.Event {
	return agentapi.Event{Log: log, LoggedEvent: host.LoggedEvent{Time: noon.Add(time.Duration(second) * time.Second),
		Event: host.Event{Source: source, Level: level, ID: id, Message: message}}}
}

// sampleEvents returns the events of a host after a crash of containerd, the newest of each log first.
func sampleEvents() []agentapi.Event {
	return []agentapi.Event{
		newEvent("Application", 9, host.EventInformation, "windows-instance-config-daemon", 1,
			"Drift was repaired:\r\nStartService containerd, because the service does not run"),
		newEvent("Application", 2, host.EventError, "Application Error", 1000, "containerd.exe; 2.1.4; ntdll.dll\x1b[2J"),
		newEvent("System", 9, host.EventInformation, "Service Control Manager", 7036, "containerd; running"),
		newEvent("System", 3, host.EventError, "Service Control Manager", 7031, "containerd; 1; 5000; 1; Restart the service"),
		newEvent("System", 3, host.EventError, "Service Control Manager", 7034, "Database; 1"),
		newEvent("System", -9, host.EventWarning, "Disk", 153, `\Device\Harddisk0\DR0`),
	}
}

// fakeCollector returns the answers in order, one per call, and then repeats the last answer.
type fakeCollector struct {
	mu       sync.Mutex
	answers  []answered
	requests []string
}

type answered struct {
	events  []agentapi.Event
	unknown map[string]string
	err     error
}

func (m *fakeCollector) Collect(_ context.Context, arguments ...string) (agentapi.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, strings.Join(arguments, " "))
	next := m.answers[0]
	m.answers = m.answers[min(1, len(m.answers)-1):]
	return agentapi.Result{Collected: &agentapi.Collected{Events: next.events, Unknown: next.unknown}}, next.err
}

// output can be read and written concurrently.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func newViewer(answers ...answered) (*EventViewer, *fakeCollector, *output) {
	m, out := &fakeCollector{answers: answers}, &output{}
	return &EventViewer{Viewer: logprinter.Viewer{Out: out, ErrOut: out, Clock: clocktesting.NewFakeClock(noon), Tail: 200}, Host: m}, m, out
}

func TestEventViewer_FormatsEventsAsLines(t *testing.T) {
	v, m, out := newViewer(answered{events: sampleEvents()})
	if err := v.Show(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Join(m.requests, "\n") != "--events last:604800s" {
		t.Errorf("it has asked %q", m.requests)
	}
	path := filepath.Join("testdata", "events.txt")
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s (-want +got); go test ./internal/inspection/hostevents -update writes it:\n%s", path, diff)
	}
}

func TestEventViewer_SelectsRequestedEvents(t *testing.T) {
	for name, c := range map[string]struct {
		service   string
		since     time.Duration
		tail      int
		requested string
		ids       string
	}{
		"the last two of all":                  {"", 0, 2, "604800s", "7036 1"},
		"none":                                 {"", 0, 0, "604800s", ""},
		"all since a moment":                   {"", time.Hour, -1, "3600s", "153 1000 7034 7031 7036 1"},
		"of a service, and those that name it": {"containerd", 0, 200, "604800s", "1000 7031 7036 1"},
		"the last of a service":                {"containerd", 0, 1, "604800s", "1"},
		"of the agent":                         {"windows-instance-config-daemon", 0, 200, "604800s", "1"},
		"of a service that nothing is said of": {"kubelet", 0, 200, "604800s", ""},
		"of less than a second":                {"", time.Millisecond, 0, "1s", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v, m, out := newViewer(answered{events: sampleEvents()})
			v.Service, v.Since, v.Tail = c.service, c.since, c.tail
			if err := v.Show(t.Context()); err != nil {
				t.Fatal(err)
			}
			var ids []string
			for line := range strings.Lines(out.String()) {
				for _, e := range sampleEvents() {
					if strings.Contains(line, fmt.Sprintf("/%s %d", e.Source, e.ID)) {
						ids = append(ids, fmt.Sprint(e.ID))
					}
				}
			}
			if got := strings.Join(ids, " "); got != c.ids || m.requests[0] != "--events last:"+c.requested {
				t.Errorf("it shows %q of %q, want %q of %q:\n%s", got, m.requests, c.ids, c.requested, out)
			}
		})
	}
}

func TestEventViewer_UnknownServiceRejected(t *testing.T) {
	v, m, _ := newViewer(answered{})
	v.Service = "Database"
	if err := v.Show(t.Context()); err == nil || !strings.Contains(err.Error(), "a node has no service Database; its services are containerd, kubelet") || len(m.requests) > 0 {
		t.Errorf("%v, it has asked %q", err, m.requests)
	}
}

func TestEventViewer_MissingEventsReported(t *testing.T) {
	unknown := map[string]string{"events": "log System: it is\x1b[2J damaged", "earlier events": "only the newest 1000 events of log System are included"}
	const damaged, older = "Warning: events are missing: log System: it is[2J damaged\n", "Warning: events are missing: only the newest 1000 events of log System are included\n"
	for name, c := range map[string]struct {
		since time.Duration
		tail  int
		want  string
	}{
		"the last ones": {0, 10, damaged}, "all": {0, -1, damaged + older}, "those since a moment": {time.Hour, 10, damaged + older},
	} {
		v, _, out := newViewer(answered{unknown: unknown})
		v.Since, v.Tail = c.since, c.tail
		if err := v.Show(t.Context()); err != nil || out.String() != c.want {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// followUntil follows the event log on a clock that the test steps, and returns the final error.
func followUntil(t *testing.T, v *EventViewer, done func() bool) error {
	t.Helper()
	clock := clocktesting.NewFakeClock(noon)
	v.Clock, v.Follow = clock, true
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() { ended <- v.Show(ctx) }()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		select {
		case err := <-ended:
			return err
		default:
		}
		if done() {
			interrupt()
			return <-ended
		}
		if clock.HasWaiters() {
			clock.Step(followInterval)
		}
	}
	t.Fatal("it does not come to its end")
	return nil
}

func TestEventViewer_FollowShowsEachEventOnce(t *testing.T) {
	again := newEvent("System", 9, host.EventError, "Service Control Manager", 7034, "kubelet; 1")
	busy := errors.New("the host is busy")
	v, m, out := newViewer(answered{events: []agentapi.Event{again}}, answered{events: []agentapi.Event{again, again}}, answered{err: busy}, answered{err: busy},
		answered{events: []agentapi.Event{newEvent("System", 30, host.EventError, "Disk", 7, "it is new"), again, again}}, answered{})
	if err := followUntil(t, v, func() bool { return strings.Contains(out.String(), "it is new") }); err != nil {
		t.Error(err)
	}
	line := formatEvent(again) + "\n"
	if want := line + line + "Warning: the host is busy\n" + formatEvent(newEvent("System", 30, host.EventError, "Disk", 7, "it is new")) + "\n"; out.String() != want {
		t.Errorf("it prints\n%swant\n%s", out, want)
	}
	// The next request must also cover the period of a failed request.
	want := []string{"--events last:604800s", "--events last:65s", "--events last:65s", "--events last:70s", "--events last:75s"}
	if diff := cmp.Diff(want, m.requests[:len(want)]); diff != "" {
		t.Errorf("it has asked (-want +got):\n%s", diff)
	}
}

func TestEventViewer_LostConnectionEndsFollow(t *testing.T) {
	v, _, _ := newViewer(answered{}, answered{err: &remote.Error{Reason: remote.ReasonConnectionLost, Host: "10.0.0.1", Message: "the connection was lost"}})
	if err := followUntil(t, v, func() bool { return false }); err == nil || !strings.Contains(err.Error(), "Run the command again when the host responds") {
		t.Errorf("it ends with %v", err)
	}
}

func TestIsServiceEvent(t *testing.T) {
	for message, want := range map[string]bool{
		"kubelet; 1": true, "Kubelet.exe; 1.36": true, "kubelet.": true, `C:\k\kubelet.exe`: true, "kubelets; 1": false, "my-kubelet; 1": false, "": false,
	} {
		if got := isServiceEvent(host.Event{Source: "Service Control Manager", Message: message}, "kubelet"); got != want {
			t.Errorf("%q: %t", message, got)
		}
	}
}
