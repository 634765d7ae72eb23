package recorder_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

func TestNotesOfEvents(t *testing.T) {
	for name, c := range map[string]struct{ note, want string }{
		"one that fits stays as it is":     {"Node a is Ready: 100 %, \"yes\".", "Node a is Ready: 100 %, \"yes\"."},
		"of several lines it makes one":    {"a\r\n\tb", "a   b"},
		"controls of a terminal go":        {"\x1b[2Jall is well\u202e", "[2Jall is well"},
		"a long one ends where it is full": {strings.Repeat("ä", 1000), strings.Repeat("ä", 510) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := events.NewFakeRecorder(1)
			recorder.Bounded(fake).Eventf(&corev1.Node{}, nil, corev1.EventTypeNormal, "Reason", "Action", "%s", c.note)
			got := <-fake.Events
			if got != "Normal Reason "+c.want {
				t.Errorf("%q", got)
			}
			if note := strings.TrimPrefix(got, "Normal Reason "); len(note) > recorder.LongestNote || !utf8.ValidString(note) {
				t.Errorf("%d bytes", len(note))
			}
		})
	}
}
