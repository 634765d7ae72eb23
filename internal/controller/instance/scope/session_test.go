package scope

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// The pool closes an idle connection long before a wait for a Node or a subnet may end. The limit of the wait
// must hold regardless.
func TestWaitingSince_KeepsStartOfSameWait(t *testing.T) {
	s := &Session{}
	start := s.WaitingSince("the Node to report Ready", noon)
	if again := s.WaitingSince("the Node to report Ready", noon.Add(time.Minute)); !again.Equal(start) {
		t.Errorf("the wait began at %s, and again at %s", start, again)
	}
	if other := s.WaitingSince("a pod subnet", noon.Add(time.Hour)); !other.Equal(noon.Add(time.Hour)) {
		t.Errorf("another wait began at %s", other)
	}
}
