package instance

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

func TestFailedChecks(t *testing.T) {
	wanted := []nodespec.Check{
		{Name: "KubeletHealthy"}, {Name: "KubeProxyHealthy"}, {Name: "AntivirusExclusions", Advisory: true}, {Name: "ExporterServes", Advisory: true},
	}
	results := []verb.CheckResult{
		{Name: "KubeletHealthy", Passed: true, Message: "200"}, {Name: "KubeProxyHealthy", Message: "connection refused"},
		{Name: "AntivirusExclusions", Message: "scans containerd.exe"},
	}
	t.Run("gating checks are those that keep a node from becoming Ready", func(t *testing.T) {
		if got := failedChecks(wanted, results, false); !slices.Equal(got, []string{"KubeProxyHealthy: connection refused"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("advisory ones are told apart, and one that was not answered has not passed", func(t *testing.T) {
		want := []string{"AntivirusExclusions: scans containerd.exe", "ExporterServes: the agent did not answer"}
		if got := failedChecks(wanted, results, true); !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
}

func TestAdvice(t *testing.T) {
	advise := func(failed ...string) (text string, told []string) {
		recorder := events.NewFakeRecorder(len(failed))
		s := &scope{
			Reconciler: &Reconciler{Events: recorder}, instance: &v1alpha1.WindowsInstance{}, session: &session{advice: failed},
		}
		text = s.advise()
		close(recorder.Events)
		for event := range recorder.Events {
			told = append(told, event)
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
		if len(told) != 1 || !strings.Contains(told[0], "AdvisoryCheckFailed") || !strings.Contains(told[0], "scans containerd.exe") {
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
	t.Run("it goes with what else was learnt of the host", func(t *testing.T) {
		s := &session{checked: true, advice: []string{"ExporterServes: 500"}}
		if s.forgetHost(); s.advice != nil {
			t.Errorf("%q is still told", s.advice)
		}
	})
}
