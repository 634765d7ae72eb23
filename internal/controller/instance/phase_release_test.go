package instance

import (
	"k8s.io/client-go/tools/events"

	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
)

func TestAdvice(t *testing.T) {
	advise := func(failed ...string) (text string, told []string) {
		recorder := events.NewFakeRecorder(len(failed))
		p := release{events: event.Recorder{EventRecorder: recorder}}
		text = p.advise(scope.New(&v1alpha1.WindowsInstance{}, &scope.Session{Advice: failed}))
		close(recorder.Events)
		for line := range recorder.Events {
			told = append(told, line)
		}
		return text, told
	}
	t.Run("a node that passed all checks is Ready without more words", func(t *testing.T) {
		if text, told := advise(); text != "" || len(told) > 0 {
			t.Errorf("got %q and events %q", text, told)
		}
	})
	t.Run("a failed check is in the condition's message, and an event", func(t *testing.T) {
		text, told := advise("AntivirusExclusions: scans containerd.exe")
		if text != " But AntivirusExclusions: scans containerd.exe." {
			t.Errorf("the message goes on with %q", text)
		}
		if len(told) != 1 || !strings.Contains(told[0], "AdvisoryCheckFailed") ||
			!strings.Contains(told[0], "scans containerd.exe") {
			t.Errorf("the events are %q", told)
		}
	})
	t.Run("what a check says at length only the event has whole", func(t *testing.T) {
		text, told := advise("AntivirusExclusions: " + strings.Repeat("policy ", 60) + "end")
		if len(text) > longestAdvice+len(" But .") || !strings.HasSuffix(text, "….") {
			t.Errorf("the message goes on with %d bytes: %q", len(text), text)
		}
		if len(told) != 1 || !strings.Contains(told[0], "policy end") {
			t.Errorf("the events are %q", told)
		}
	})
	t.Run("a known fault of the host's build is in the condition's message", func(t *testing.T) {
		instance := &v1alpha1.WindowsInstance{}
		instance.Status.Host = &v1alpha1.HostStatus{Build: "10.0.20348.2600"}
		text := release{}.advise(scope.New(instance, &scope.Session{}))
		if !strings.HasPrefix(text, " But with build 10.0.20348.2600") || !strings.HasSuffix(text, "(KB5044281) or later mends that.") {
			t.Errorf("the message goes on with %q", text)
		}
	})
	t.Run("it goes with what else was learnt of the host", func(t *testing.T) {
		s := &scope.Session{Checked: true, Advice: []string{"ExporterServes: 500"}}
		if s.ForgetHost(); s.Advice != nil {
			t.Errorf("%q is still told", s.Advice)
		}
	})
}
