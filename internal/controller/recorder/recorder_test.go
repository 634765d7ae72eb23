package recorder_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

func TestBounded_NotesSanitizedAndTruncated(t *testing.T) {
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
			if note := strings.TrimPrefix(got, "Normal Reason "); len(note) > recorder.MaxNoteLength || !utf8.ValidString(note) {
				t.Errorf("%d bytes", len(note))
			}
		})
	}
}

// seen records the related objects of events.
type seen struct{ related []runtime.Object }

func (s *seen) Eventf(_, related runtime.Object, _, _, _, _ string, _ ...any) {
	s.related = append(s.related, related)
}

func TestEmit_EventWithoutObjectNotRecorded(t *testing.T) {
	var none *corev1.Node
	t.Run("an event about nothing is not recorded", func(t *testing.T) {
		s := &seen{}
		recorder.Emit(s, recorder.Warning(none, &corev1.Node{}, "Reason", "Action", "It is so."))
		recorder.Emit(s, recorder.Warning(nil, nil, "Reason", "Action", "It is so."))
		if len(s.related) != 0 {
			t.Errorf("got %d events", len(s.related))
		}
	})
	t.Run("an event that is related to nothing is recorded without it", func(t *testing.T) {
		s := &seen{}
		recorder.Emit(s, recorder.Normal(&corev1.Node{}, none, "Reason", "Action", "It is so."))
		if len(s.related) != 1 || s.related[0] != nil {
			t.Errorf("got %v", s.related)
		}
	})
}
