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
	// SendFullFiles is true after a failed apply. Missing files are then sent in full, in case a patch did not fit. An
	// interrupted transfer resumes with the same archive.
	SendFullFiles bool
	// PendingDisruption identifies the change that waits for a disruption slot: the digest of the spec, or
	// RebootPending; empty if unknown.
	PendingDisruption string
	// Unresponsive is true if the host did not respond to the last connection.
	Unresponsive bool
	// OtherHost is true if a removal last reached a host other than the host of the instance's Node.
	OtherHost bool
	// RollbackTarget is the digest of the last reported rollback target. ChangeFailures counts the failures of a change
	// of a node in service.
	RollbackTarget string
	ChangeFailures int
	// NoRollbackReason is the last reported reason why the host has no rollback target; empty for none.
	NoRollbackReason string
	// RefusedName is the last refused node name.
	RefusedName string
	// LostCertificate is true while a node that had joined before needs another certificate.
	LostCertificate bool
	// Renewal is the state of the certificate renewals.
	Renewal Renewal
	// Attempts counts consecutive failures.
	Attempts int
	// WaitName is the name of the current wait, and WaitStart its start, for limits. WaitSpecDigest is the digest of
	// the NodeSpec applied before the wait.
	WaitName       string
	WaitStart      time.Time
	WaitSpecDigest string
	// DrainStart is the start of a drain that is not recorded on the API server; zero for none. It is separate from
	// the other waits, which continue during a drain.
	DrainStart time.Time
	// RegistrationRestart is the time of the last kubelet restart for a missing Node; zero for none.
	RegistrationRestart time.Time
	// KeepsWait is true if the wait for the Node continues after another NodeSpec is applied that makes the
	// kubelet register again.
	KeepsWait bool
	// KubeletSince is the start time of the kubelet by the operator's clock; zero if unknown. KubeletAbsent is
	// the time of the last report after an apply that the kubelet does not run.
	KubeletSince, KubeletAbsent time.Time
	// RebootPolls counts the checks of a restarting host.
	RebootPolls int
	// AddressChanged is true if the host is checked because its name resolves to another address. AgentCheckActive is
	// true if the host is checked because the agent does not maintain the host. Both last until the resulting work
	// has ended.
	AddressChanged, AgentCheckActive bool
	// Reverts is the backoff for other writers that change fields owned by the operator on the Node.
	Reverts RevertState
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
	// LiveVersion is the last version of the instance that was seen on the API server, at LiveVersionAt.
	LiveVersion   string
	LiveVersionAt time.Time
	// Instances and Machines are requested lists that were not read yet.
	Instances *queue.Listing[v1alpha1.WindowsInstance]
	Machines  *queue.Listing[machinev1beta1.Machine]
	// Conflicts counts consecutive writes of the status that failed because another client has changed the
	// instance.
	Conflicts int
	// HiddenResult identifies the result that is not shown yet. HiddenSince is the start of that result.
	HiddenResult string
	HiddenSince  time.Time
}

// DrainSince returns the start time of the current drain.
func (s *Session) DrainSince(now time.Time) time.Time {
	if s.DrainStart.IsZero() {
		s.DrainStart = now
	}
	return s.DrainStart
}

// WaitingSince returns the start time of the named wait.
func (s *Session) WaitingSince(what string, now time.Time) time.Time {
	if s.WaitName != what {
		s.WaitName, s.WaitStart = what, now
	}
	return s.WaitStart
}

// RebootPending identifies a requested restart that waits for a disruption slot.
const RebootPending = "reboot"

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
	// Failure is the failure of the last check, kept until the next check; nil if the check succeeded.
	Failure *result.Result
}

// RevertState counts consecutive reverts of fields owned by the operator on a Node. Last is the time of the last
// revert.
type RevertState struct {
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

// Get returns a copy of the session of an instance, or a new session. The session of a deleted instance of the
// same name is dropped.
func (s *Sessions) Get(name string, uid types.UID) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byName[name]
	if known == nil || known.uid != uid {
		return &Session{uid: uid}
	}
	session := *known
	return &session
}

// Store stores the session of an instance after a reconcile.
func (s *Sessions) Store(name string, session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*Session{}
	}
	s.byName[name] = session
}

// RecordConflict counts a write that failed with a conflict. Other changes of the reconcile to the session are dropped.
func (s *Sessions) RecordConflict(name string, dropped *Session) {
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

// ObserveCached records that the cache has a version of an instance, so an older written version need not be kept.
func (s *Sessions) ObserveCached(instance *v1alpha1.WindowsInstance, older func(version, than string) bool) {
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
