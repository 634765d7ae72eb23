package scope

import (
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// Session is the operator's memory of a host between two reconciles while it works on it. All of it can be lost: the
// host and the API server know everything that matters.
type Session struct {
	// uid is the UID of the instance.
	uid types.UID
	// Clock is the host's time when it was asked for its facts.
	Clock support.ClockReading
	// Whole is true after an apply that failed: what the host lacks is then sent whole, in case a patch did not fit. A transfer
	// that was cut goes on with the same archive.
	Whole bool
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
	// RefusedName is the node name that was refused last.
	RefusedName string
	// LostCertificate is true while a node that had joined before needs another certificate.
	LostCertificate bool
	// Renewal is how it stands with certificates that are to be renewed.
	Renewal Renewal
	// Attempts counts failures in a row.
	Attempts int
	// Since is when the present wait began, for limits, and Spec the digest of what the host was brought to before it.
	Waiting string
	Since   time.Time
	Spec    string
	// Drains is when the drain began of a node that the API server does not say it of; zero when none has. It is apart
	// from the other waits, which go on while a node is drained.
	Drains time.Time
	// RegistersAgain is when the kubelet was last started again because its Node has not come; zero when it was not.
	RegistersAgain time.Time
	// KeepsWait is true if the wait for the Node goes on although another NodeSpec is applied, which has the kubelet register again.
	KeepsWait bool
	// KubeletSince is the time since which the kubelet runs, by the operator's clock; zero if it is not known. KubeletAbsent is when the
	// host last reported after an apply that it does not run.
	KubeletSince, KubeletAbsent time.Time
	// RestartLooks counts the looks at a host that restarts.
	RestartLooks int
	// Moved is true if the host is checked because its name leads to another address, and Checking if it is because its agent does not
	// maintain it, until the work that this begins has ended.
	Moved, Checking bool
	// PutBack is what the operator remembers of writers that change what it owns on the Node.
	PutBack PutBack
	// AgentCheck is the backoff of checks of a host whose agent does not maintain it.
	AgentCheck AgentCheck
	// Unreported is the present reason of the summary until an event was recorded about it.
	Unreported string
	// LastWrite is when the status was last written to the API, and Written the instance as it was then.
	LastWrite time.Time
	Written   *v1alpha1.WindowsInstance
	// Unwritten is the status that follows from what the operator knows and that is not written yet, and Base the version of the
	// instance that it belongs to.
	Unwritten *v1alpha1.WindowsInstanceStatus
	Base      string
	// Proven is the version of the instance that the API server was last seen to have, at ProvenAt.
	Proven   string
	ProvenAt time.Time
	// Instances and Machines are lists that were requested and are not read yet.
	Instances *queue.Listing[v1alpha1.WindowsInstance]
	Machines  *queue.Listing[machinev1beta1.Machine]
	// Conflicts counts the writes of the status in a row that were refused because another client has changed the instance.
	Conflicts int
	// Quiet is the result that is not shown yet, and since when it lasts.
	Quiet      string
	QuietSince time.Time
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
	Failure *result.Result
}

// AgentCheck is the backoff of checks: their number since the agent last maintained the host for long, and the time
// before which there is no further check.
type AgentCheck struct {
	Checks int
	Next   time.Time
	// Failure is the failure of the last check, until the next one; nil when it succeeded.
	Failure *result.Result
}

// PutBack counts how often in a row the operator has put back what it owns on a Node, and when it did so last.
type PutBack struct {
	Times int
	Last  time.Time
	// Refused is the API server's refusal of the last attempt; nil for none.
	Refused *result.Result
}

// Sessions are the sessions by instance name. Each is used by one reconcile at a time.
type Sessions struct {
	mu     sync.Mutex
	byName map[string]*Session
}

// Of returns a copy of the session of an instance, a new one if there is none. The session of a deleted instance of the same name
// is dropped.
func (s *Sessions) Of(name string, uid types.UID) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byName[name]
	if known == nil || known.uid != uid {
		return &Session{uid: uid}
	}
	session := *known
	return &session
}

// Keep keeps the session of an instance after a reconcile.
func (s *Sessions) Keep(name string, session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*Session{}
	}
	s.byName[name] = session
}

// Conflict counts a write that was refused. What the reconcile has noted is dropped.
func (s *Sessions) Conflict(name string, dropped *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*Session{}
	}
	known := s.byName[name]
	if known == nil || known.uid != dropped.uid {
		known = &Session{uid: dropped.uid}
		s.byName[name] = known
	}
	known.Conflicts++
	known.Unwritten = nil
}

// Seen notes that the cache has a version of an instance, so that what this operator wrote before need not be kept.
func (s *Sessions) Seen(instance *v1alpha1.WindowsInstance, older func(version, than string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byName[instance.Name]; known != nil && known.Written != nil && !older(instance.ResourceVersion, known.Written.ResourceVersion) {
		kept := *known // a reconcile may read it
		kept.Written = nil
		s.byName[instance.Name] = &kept
	}
}

// Drop forgets the session of an instance.
func (s *Sessions) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}
