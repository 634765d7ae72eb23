package scope

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/places"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// Session is the operator's memory of a host between two reconciles while it works on it. All of it can be lost: the
// host and the API server know everything that matters.
type Session struct {
	// uid is the UID of the instance.
	uid types.UID
	// Connection is the one that the rest was learnt over.
	Connection *remote.Connection
	// Agent is the path of the agent on the host; empty when it was not looked for on the present connection.
	Agent string
	// Whole is true after an apply that failed: what the host lacks is then sent whole, in case a patch did not fit. A
	// transfer that was cut goes on with the same archive.
	Whole bool
	// Facts are the last that the host told.
	Facts *plan.Facts
	// Clock is the host's time when it was asked for its facts.
	Clock support.ClockReading
	// Applied is the digest (and certificate serial) of the spec that the last apply was given, and Left the steps that it
	// could not do yet.
	Applied string
	Left    plan.Plan
	// Turn is the digest of the spec for whose sake the node must be disturbed and whose turn has not come, or RebootTurn;
	// empty when it is not known.
	Turn string
	// Unanswered is true while the host did not answer when it was asked last.
	Unanswered bool
	// OtherHost is true if the host that a removal reached last is not the host of the instance's Node.
	OtherHost bool
	// Fallback is the digest of what the host can be brought back to, as it told last; ChangeFailures counts the failures
	// of a change of a node in service.
	Fallback       string
	ChangeFailures int
	// NoFallback is why it was last reported that the host cannot be brought back to what it is; empty when it was not.
	NoFallback string
	// Checked is true when verify passed since the last change.
	Checked bool
	// KubeletStarted is when the kubelet began that was checked then, by the host's clock; zero when it is not known.
	KubeletStarted time.Time
	// Advice are the advisory checks that failed then, with what was found.
	Advice []string
	// Renewal is how it stands with certificates that are to be renewed.
	Renewal Renewal
	// Attempts counts failures in a row. Slow is true when the last failure kept a worker waiting.
	Attempts int
	Slow     bool
	// Since is when the present wait began, for limits, and Spec the digest of what the host was brought to before it.
	Waiting string
	Since   time.Time
	Spec    string
	// Drains is when the drain began of a node that the API server does not say it of; zero when none has. It is apart
	// from the other waits, which go on while a node is drained.
	Drains time.Time
	// RegistersAgain is when the kubelet was last started again because its Node has not come; zero when it was not.
	RegistersAgain time.Time
	// KubeletSince is the time since which the kubelet runs, by the operator's clock; zero if it is not known.
	KubeletSince time.Time
	// RestartLooks counts the looks at a host that restarts.
	RestartLooks int
	// PutBack is what the operator remembers of writers that change what it owns on the Node.
	PutBack PutBack
	// AgentCheck is the backoff of checks of a host whose agent does not maintain it.
	AgentCheck AgentCheck
	// Order is the place of the host among those that are sent programs. A host that waits for its restart keeps it, and so
	// does that of a node which is being changed; any other that has failed begins anew, behind the others.
	Order places.Order
	// Unreported is the present reason of the summary until an event was recorded about it.
	Unreported string
	// LastWrite is when the status was last written to the API.
	LastWrite time.Time
}

// ForgetHost drops the facts learnt over a connection that is gone. A wait for anything but the host continues: the
// pool closes idle connections long before the limits of most waits.
func (s *Session) ForgetHost() {
	s.Connection, s.Agent = nil, ""
	s.ForgetState()
}

// ForgetState drops the known state of the host, which is about to change.
func (s *Session) ForgetState() {
	s.Facts, s.Applied, s.Left, s.Checked, s.Advice = nil, "", plan.Plan{}, false, nil
}

// DrainSince returns when the present drain began.
func (s *Session) DrainSince(now time.Time) time.Time {
	if s.Drains.IsZero() {
		s.Drains = now
	}
	return s.Drains
}

// WaitingSince returns when the named wait began.
func (s *Session) WaitingSince(what string, now time.Time) time.Time {
	if s.Waiting != what {
		s.Waiting, s.Since = what, now
	}
	return s.Since
}

// RebootTurn is the value of Session.Turn for a restart that was asked for.
const RebootTurn = "reboot"

// Renewal is the state of a host's certificate renewals.
type Renewal struct {
	// Attempts counts failures in a row; the next attempt is not before Next.
	Attempts int
	Next     time.Time
	// Failure is the failure of the last attempt; nil when it succeeded.
	Failure *obstacle.Obstacle
}

// AgentCheck is the backoff of checks: their number since the agent last maintained the host for long, and the time
// before which there is no further check.
type AgentCheck struct {
	Checks int
	Next   time.Time
	// Failure is the failure of the last check, until the next one; nil when it succeeded.
	Failure *obstacle.Obstacle
}

// PutBack counts how often in a row the operator has put back what it owns on a Node, and when it did so last.
type PutBack struct {
	Times int
	Last  time.Time
	// Refused is the API server's refusal of the last attempt; nil for none.
	Refused *obstacle.Obstacle
}

// Sessions are the sessions by instance name. Each is used by one reconcile at a time.
type Sessions struct {
	mu     sync.Mutex
	byName map[string]*Session
}

// Of returns the session of an instance, a new one if there is none. It drops the session of a deleted instance of the same
// name, and reports whether it did.
func (s *Sessions) Of(name string, uid types.UID) (session *Session, dropped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*Session{}
	}
	known := s.byName[name]
	if known == nil || known.uid != uid {
		s.byName[name] = &Session{uid: uid}
	}
	return s.byName[name], known != nil && known.uid != uid
}

// Drop forgets the session of an instance.
func (s *Sessions) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}
