package instance

import (
	"errors"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// The host is not trusted to send what the agent would: an answer without a result must not be taken for one.
func TestOnlyWhatMayRestartTheHostMayAnswerThatItRestarts(t *testing.T) {
	restarts := verb.Line{Type: verb.TypeRebooting}
	for name, allowed := range map[verb.Name]bool{
		verb.Facts: false, verb.Plan: false, verb.Verify: false, verb.Settle: false, verb.Apply: true, verb.Remove: true, verb.Rollback: true, verb.Reboot: true,
	} {
		if err := complete(name, restarts); (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A transfer that was cut goes on only with the same archive: patches must not give way to whole files because of it.
func TestAFailureOnTheWayLeavesThePatches(t *testing.T) {
	s := &scope{
		Reconciler: &Reconciler{Hosts: remote.NewPool(&remote.Dialer{})},
		instance:   &v1alpha1.WindowsInstance{},
		session:    &session{agent: `C:\k\wicd\0123\wicd.exe`, facts: &plan.Facts{}},
	}
	s.hostFailed(v1alpha1.ConditionInstalled, errors.New("the connection was lost"))
	if s.session.whole || s.session.agent != "" || s.session.facts != nil {
		t.Errorf("%+v", s.session)
	}
}

func TestWhatAHostWasBroughtToIsForgottenWithoutItsConnection(t *testing.T) {
	connection := &remote.Connection{}
	s := &session{
		connection: connection, agent: "agent", facts: &plan.Facts{}, applied: "digest", checked: true,
		left: plan.Plan{Steps: []plan.Step{{}}}, advice: []string{"x"},
	}
	s.forgetState()
	if s.facts != nil || s.applied != "" || s.checked || len(s.left.Steps) > 0 || s.advice != nil {
		t.Errorf("still known: %+v", s)
	}
	if s.connection != connection || s.agent != "agent" {
		t.Error("the connection is forgotten too")
	}
}

// The pool closes a connection that is idle long before a wait for a Node or a subnet may end: the wait's limit must hold all the same.
func TestAWaitGoesOnWhenItsConnectionIsGone(t *testing.T) {
	s := &session{}
	began := s.waitingSince("the Node to report Ready", noon)
	s.forgetHost()
	if again := s.waitingSince("the Node to report Ready", noon.Add(time.Minute)); !again.Equal(began) {
		t.Errorf("the wait began at %s, and again at %s", began, again)
	}
	if other := s.waitingSince("a pod subnet", noon.Add(time.Hour)); !other.Equal(noon.Add(time.Hour)) {
		t.Errorf("another wait began at %s", other)
	}
}
