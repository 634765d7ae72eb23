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

// Session is the operator's state of a host between two reconciles while work is in progress. All of it can be
// lost, because the host and the API server have all essential state.
type Session struct {
	// uid is the UID of the instance.
	uid types.UID
	// Clock is the last reading of the host's clock.
	Clock support.ClockReading
	// Whole is true after a failed apply. Missing files are then sent in full, in case a patch did not fit. An
	// interrupted transfer resumes with the same archive.
	Whole bool
	// Turn identifies the change that waits for a disruption slot: the digest of the spec, or RebootTurn; empty
	// if unknown.
	Turn string
	// Unanswered is true if the host did not respond to the last connection.
	Unanswered bool
	// OtherHost is true if a removal last reached a host other than the host of the instance's Node.
	OtherHost bool
	// Fallback is the digest of the last reported rollback target. ChangeFailures counts the failures of a change
	// of a node in service.
	Fallback       string
	ChangeFailures int
	// NoFallback is the last reported reason why the host has no rollback target; empty for none.
	NoFallback string
	// RefusedName is the last refused node name.
	RefusedName string
	// LostCertificate is true while a node that had joined before needs another certificate.
	LostCertificate bool
	// Renewal is the state of the certificate renewals.
	Renewal Renewal
	// Attempts counts consecutive failures.
	Attempts int
	// Waiting is the name of the current wait, and Since its start, for limits. Spec is the digest of the
	// NodeSpec applied before the wait.
	Waiting string
	Since   time.Time
	Spec    string
	// Drains is the start of a drain that is not recorded on the API server; zero for none. It is separate from
	// the other waits, which continue during a drain.
	Drains time.Time
	// RegistersAgain is the time of the last kubelet restart for a missing Node; zero for none.
	RegistersAgain time.Time
	// KeepsWait is true if the wait for the Node continues after another NodeSpec is applied that makes the
	// kubelet register again.
	KeepsWait bool
	// KubeletSince is the start time of the kubelet by the operator's clock; zero if unknown. KubeletAbsent is
	// the time of the last report after an apply that the kubelet does not run.
	KubeletSince, KubeletAbsent time.Time
	// RestartLooks counts the checks of a restarting host.
	RestartLooks int
	// Moved is true if the host is checked because its name resolves to another address. Checking is true if the
	// host is checked because the agent does not maintain the host. Both last until the resulting work has ended.
	Moved, Checking bool
	// PutBack is the backoff for other writers that change fields owned by the operator on the Node.
	PutBack PutBack
	// AgentCheck is the backoff of checks of a host without maintenance by its agent.
	AgentCheck AgentCheck
	// Unreported is the current reason of the summary until an event was recorded about it.
	Unreported string
	// LastWrite is the time of the last write of the status to the API server. Written is the written instance.
	LastWrite time.Time
	Written   *v1alpha1.WindowsInstance
	// Unwritten is the status that was computed but not written yet. Base is the version of its instance.
	Unwritten *v1alpha1.WindowsInstanceStatus
	Base      string
	// Proven is the last version of the instance that was seen on the API server, at ProvenAt.
	Proven   string
	ProvenAt time.Time
	// Instances and Machines are requested lists that were not read yet.
	Instances *queue.Listing[v1alpha1.WindowsInstance]
	Machines  *queue.Listing[machinev1beta1.Machine]
	// Conflicts counts consecutive writes of the status that failed because another client has changed the
	// instance.
	Conflicts int
	// Quiet identifies the result that is not shown yet. QuietSince is the start of that result.
	Quiet      string
	QuietSince time.Time
}

// DrainSince returns the start time of the current drain.
func (s *Session) DrainSince(now time.Time) time.Time {
	if s.Drains.IsZero() {
		s.Drains = now
	}
	return s.Drains
}

// WaitingSince returns the start time of the named wait.
func (s *Session) WaitingSince(what string, now time.Time) time.Time {
	if s.Waiting != what {
		s.Waiting, s.Since = what, now
	}
	return s.Since
}

// RebootTurn identifies a requested restart that waits for a disruption slot.
const RebootTurn = "reboot"

// Renewal is the state of a host's certificate renewals.
type Renewal struct {
	// Attempts counts consecutive failures. The next attempt is not before Next.
	Attempts int
	Next     time.Time
	// Failure is the failure of the last attempt; nil if the attempt succeeded.
	Failure *result.Result
}

// AgentCheck is the backoff of checks. Checks is their number since the agent last maintained the host for long,
// and Next is the earliest time of the next check.
type AgentCheck struct {
	Checks int
	Next   time.Time
	// Failure is the failure of the last check; nil if the check succeeded.
	Failure *result.Result
}

// PutBack counts consecutive reverts of fields owned by the operator on a Node. Last is the time of the last
// revert.
type PutBack struct {
	Times int
	Last  time.Time
	// Refused is the error of the API server for the last attempt; nil for none.
	Refused *result.Result
}

// Sessions are the sessions by instance name. Each is used by one reconcile at a time.
type Sessions struct {
	mu     sync.Mutex
	byName map[string]*Session
}

// Of returns a copy of the session of an instance, or a new session. The session of a deleted instance of the
// same name is dropped.
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

// Keep stores the session of an instance after a reconcile.
func (s *Sessions) Keep(name string, session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*Session{}
	}
	s.byName[name] = session
}

// Conflict counts a write that failed with a conflict. Other changes of the reconcile to the session are dropped.
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

// Seen records that the cache has a version of an instance, so an older written version need not be kept.
func (s *Sessions) Seen(instance *v1alpha1.WindowsInstance, older func(version, than string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byName[instance.Name]; known != nil && known.Written != nil && !older(instance.ResourceVersion, known.Written.ResourceVersion) {
		kept := *known // a reconcile may read it
		kept.Written = nil
		s.byName[instance.Name] = &kept
	}
}

// Drop deletes the session of an instance.
func (s *Sessions) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}
