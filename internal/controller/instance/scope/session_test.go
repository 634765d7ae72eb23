package scope

import (
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/remote"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestWhatAHostWasBroughtToIsForgottenWithoutItsConnection(t *testing.T) {
	connection := &remote.Connection{}
	s := &Session{
		Connection: connection, Agent: "agent", Facts: &plan.Facts{}, Applied: "digest", Checked: true,
		Left: plan.Plan{Steps: []plan.Step{{}}}, Advice: []string{"x"},
	}
	s.ForgetState()
	if s.Facts != nil || s.Applied != "" || s.Checked || len(s.Left.Steps) > 0 || s.Advice != nil {
		t.Errorf("still known: %+v", s)
	}
	if s.Connection != connection || s.Agent != "agent" {
		t.Error("the connection is forgotten too")
	}
}

// The pool closes a connection that is idle long before a wait for a Node or a subnet may end: the wait's limit must
// hold all the same.
func TestAWaitGoesOnWhenItsConnectionIsGone(t *testing.T) {
	s := &Session{}
	began := s.WaitingSince("the Node to report Ready", noon)
	s.ForgetHost()
	if again := s.WaitingSince("the Node to report Ready", noon.Add(time.Minute)); !again.Equal(began) {
		t.Errorf("the wait began at %s, and again at %s", began, again)
	}
	if other := s.WaitingSince("a pod subnet", noon.Add(time.Hour)); !other.Equal(noon.Add(time.Hour)) {
		t.Errorf("another wait began at %s", other)
	}
}
