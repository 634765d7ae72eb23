package state

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// stored stores written lines and counts the writes.
type stored struct {
	text   string
	writes int
	broken bool
}

func (k *stored) write(lines []byte, more bool) error {
	if k.broken {
		return errors.New("the disk is full")
	}
	k.writes++
	if !more {
		k.text = ""
	}
	k.text += string(lines)
	return nil
}

// newRecordingWriter returns the writer of a started command, with a record that still has the lines of an earlier run.
func newRecordingWriter() (*Writer, *stored, *clocktesting.FakeClock) {
	on := clocktesting.NewFakeClock(time.Date(2026, 11, 25, 19, 0, 0, 0, time.UTC))
	k := &stored{text: "an earlier run\n"}
	w := NewWriter(io.Discard, on)
	w.Hello(agentapi.Hello{Version: "12.0.0", Command: agentapi.Apply})
	w.StartRecord(k.write)
	return w, k, on
}

func TestWriter_RecordsCommandOutput(t *testing.T) {
	w, k, _ := newRecordingWriter()
	w.Plan(plan.Plan{Steps: []plan.Step{{Name: "StartService kubelet"}}})
	w.Step(agentapi.Step{Name: "StartService kubelet", Index: 1, Of: 1, State: agentapi.StepDone})
	if k.writes > 0 {
		t.Error("each line is written by itself")
	}
	w.Result(agentapi.Result{Facts: &plan.Facts{}, Plan: &plan.Plan{}})
	var types []string
	for line := range strings.Lines(k.text) {
		decoded, ok := agentapi.Decode([]byte(line))
		if !ok || decoded.Result != nil && decoded.Result.Facts != nil {
			t.Errorf("it keeps %q", line)
		}
		types = append(types, string(decoded.Type))
	}
	if got := strings.Join(types, " "); got != "hello step result" || k.writes != 1 {
		t.Errorf("it keeps %s, in %d writes", got, k.writes)
	}
}

func TestWriter_RecordsLongCommandWhileRunning(t *testing.T) {
	w, k, on := newRecordingWriter()
	for _, name := range []string{"one", "two", "three"} {
		on.Step(700 * time.Millisecond)
		w.Step(agentapi.Step{Name: name, State: agentapi.StepStarted})
	}
	if k.writes != 1 || !strings.Contains(k.text, `"two"`) || strings.Contains(k.text, "an earlier run") {
		t.Errorf("after %d writes it has %q", k.writes, k.text)
	}
}

func TestWriter_FailedRecordDoesNotEndCommand(t *testing.T) {
	w, k, on := newRecordingWriter()
	k.broken = true
	on.Step(time.Minute)
	w.Step(agentapi.Step{Name: "one"})
	k.broken = false
	w.Failure(&agentapi.Failure{Reason: agentapi.ReasonDiskFull, Message: "full"})
	if !strings.Contains(k.text, `"one"`) || !strings.Contains(k.text, string(agentapi.ReasonDiskFull)) || strings.Contains(k.text, "an earlier run") {
		t.Errorf("it keeps %q", k.text)
	}
}

func TestWriter_RecordIsBoundedAndKeepsEnd(t *testing.T) {
	w, k, on := newRecordingWriter()
	for range 2000 {
		on.Step(time.Minute)
		w.Step(agentapi.Step{Name: "StartService kubelet", State: agentapi.StepProgress, Detail: strings.Repeat("x", 100)})
	}
	w.Failure(&agentapi.Failure{Reason: agentapi.ReasonServiceFailed, Message: strings.Repeat("y", 1024) + "it has ended"})
	if len(k.text) > maxRecordBytes+2048 || !strings.HasSuffix(k.text, `it has ended"}}`+"\n") {
		t.Errorf("it keeps %d bytes, which end with %.200s", len(k.text), k.text[len(k.text)-200:])
	}
}
