package instance

import (
	"sync"
	"time"

	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// session is what the operator remembers of a host between two reconciles while it works on it. All of it can be lost: the host and
// the API server know everything that matters.
type session struct {
	// connection is the one that the rest was learnt over.
	connection *remote.Connection
	// agent is the path of the agent on the host; empty when it was not looked for on the present connection.
	agent string
	// whole is true after an apply that failed: what the host lacks is then sent whole, in case a patch did not fit. A transfer that
	// was cut goes on with the same archive.
	whole bool
	// facts are the last that the host told.
	facts *plan.Facts
	// applied is the digest (and certificate serial) of the spec that the last apply was given, and left what it could not do yet.
	applied string
	left    plan.Plan
	// turn is the digest of the spec for whose sake the node must be disturbed and whose turn has not come, or rebootTurn; empty when it is
	// not known.
	turn string
	// unanswered is true while the host did not answer when it was asked last.
	unanswered bool
	// fallback is the digest of what the host can be brought back to, as it told last; changeFailures counts the failures of a change of a
	// node in service.
	fallback       string
	changeFailures int
	// checked is true when verify passed since the last change.
	checked bool
	// kubeletStarted is when the kubelet began that was checked then, by the host's clock; zero when it is not known.
	kubeletStarted time.Time
	// advice are the advisory checks that failed then, with what was found.
	advice []string
	// renewal is how it stands with certificates that are to be renewed.
	renewal renewal
	// attempts counts failures in a row.
	attempts int
	// since is when the present wait began, for limits, and spec the digest of what the host was brought to before it.
	waiting string
	since   time.Time
	spec    string
	// drains is when the drain began of a node that the API server does not say it of; zero when none has. It is apart from the other waits,
	// which go on while a node is drained.
	drains time.Time
	// restartLooks counts the looks at a host that restarts.
	restartLooks int
	// lastProgress is when progress was last written to the API.
	lastProgress time.Time
}

// forgetHost drops what was learnt over a connection that is gone. A wait for something else than the host goes on: the pool closes idle
// connections long before the limits of most waits.
func (s *session) forgetHost() {
	s.connection, s.agent = nil, ""
	s.forgetState()
}

// forgetState drops what the host was found or brought to: it is about to be something else.
func (s *session) forgetState() {
	s.facts, s.applied, s.left, s.checked, s.advice = nil, "", plan.Plan{}, false, nil
}

// drainSince returns when the drain began that goes on now.
func (s *session) drainSince(now time.Time) time.Time {
	if s.drains.IsZero() {
		s.drains = now
	}
	return s.drains
}

// waitingSince returns when the named wait began.
func (s *session) waitingSince(what string, now time.Time) time.Time {
	if s.waiting != what {
		s.waiting, s.since = what, now
	}
	return s.since
}

// sessions are the sessions by instance name. Each is used by one reconcile at a time.
type sessions struct {
	mu     sync.Mutex
	byName map[string]*session
}

func (s *sessions) of(name string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*session{}
	}
	if s.byName[name] == nil {
		s.byName[name] = &session{}
	}
	return s.byName[name]
}

func (s *sessions) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}
