package instance

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/hostkey"
	"github.com/windows-machine-config/wmco/internal/policy/reserved"
	"github.com/windows-machine-config/wmco/internal/remote"
)

const (
	// rebootLimit is how long a host may take to come back before it counts as unreachable.
	rebootLimit = 15 * time.Minute
	// firstRebootPoll and lastRebootPoll are the times between two looks at a host that restarts: the wait doubles between them.
	firstRebootPoll = 500 * time.Millisecond
	lastRebootPoll  = 2 * time.Second
)

// reach connects to the host, or takes the connection that is there, and pins its host key at first contact.
func (r *Reconciler) reach(ctx context.Context, s *scope) *obstacle {
	target, o := s.target(ctx)
	if o != nil {
		return o
	}
	if err := s.announceContact(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionReachable, "say that the host is being contacted", err)
	}
	connection, err := s.connect(ctx, target)
	if err != nil {
		s.session.forgetHost()
		// What comes with a restart passes with it; another host key does not.
		if o := s.stillRestarting(); o != nil && !isAnotherHost(err) {
			return o
		}
		if o := s.awaitUserData(err); o != nil {
			return o
		}
		return s.awaitsKey(connectObstacle(err))
	}
	if s.session.connection != connection {
		s.session.forgetHost()
		s.session.connection = connection
	}
	s.connection = connection
	s.pinHostKey(connection.HostKey(), s.instance.Status.HostKey == nil)
	s.pass(v1alpha1.ConditionReachable, "The host answers over SSH with its pinned key and accepts the operator's.")
	// The pin is written before anything is sent to the host.
	if err := s.patchStatus(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionReachable, "pin the host key", err)
	}
	return nil
}

// announceContact says what is waited for while nothing is known of the host. Later on the status has what was found last.
func (s *scope) announceContact(ctx context.Context) error {
	if reachable := meta.FindStatusCondition(s.instance.Status.Conditions, v1alpha1.ConditionReachable); reachable != nil && reachable.Status != metav1.ConditionUnknown {
		return nil
	}
	s.instance.Status.Summary = v1alpha1.ReasonInProgress
	s.instance.Status.NextAction = fmt.Sprintf("The operator connects to %s over SSH. The host has %s to answer.",
		s.instance.Spec.Address, remote.DefaultDialLimit+remote.DefaultHandshakeLimit)
	return s.patchStatus(ctx)
}

// accepts reports whether an administrator has accepted exactly this changed host key.
func (s *scope) accepts(key remote.HostKey) bool {
	return s.instance.Annotations[v1alpha1.AnnotationAcceptHostKey] == key.Fingerprint()
}

// isAnotherHost reports whether the host that answers has shown a key that is not the one it must have.
func isAnotherHost(err error) bool {
	reason := remote.ReasonOf(err)
	return reason == remote.ReasonHostKeyChanged || reason == remote.ReasonHostKeyUnexpected
}

// target says whom to connect to, and which host key must answer.
func (s *scope) target(ctx context.Context) (remote.Target, *obstacle) {
	target := remote.Target{
		Instance: s.instance.Name, Namespace: s.instance.Namespace,
		Address: s.instance.Spec.Address, User: s.instance.Spec.Username, Key: s.key,
		NoHostAt: func(address netip.Addr) string { return reserved.NoHostAt(address, s.cluster) },
	}
	if reserved.NamesAPIServer(target.Address, s.cluster) {
		return target, &obstacle{
			condition: v1alpha1.ConditionReachable, reason: v1alpha1.ReasonInvalidEntry, outcome: needsAdministrator,
			message: target.Address + " is the name of the cluster's API server, and no Windows host.", next: "Correct the entry. Nothing is sent there.",
		}
	}
	pinned := s.instance.Status.HostKey
	if pinned == nil {
		var o *obstacle
		target.Expected, o = s.expectedHostKeys(ctx)
		return target, o
	}
	data, err := base64.StdEncoding.DecodeString(pinned.Key)
	if err != nil {
		return target, apiObstacle(v1alpha1.ConditionReachable, "read the pinned host key", hostError("decode the pinned host key", s.instance, err))
	}
	target.HostKey = &remote.HostKey{Type: pinned.Type, Data: data}
	return target, nil
}

// expectedHostKeys are the fingerprints that the Machine or the instance announces for the first contact; none announce nothing. The Machine
// API itself tells none on any platform.
func (s *scope) expectedHostKeys(ctx context.Context) ([]string, *obstacle) {
	announced := []string{s.instance.Annotations[v1alpha1.AnnotationExpectedHostKey]}
	if s.ofMachine() {
		machine, err := s.machine(ctx)
		if err != nil {
			return nil, apiObstacle(v1alpha1.ConditionReachable, "read the host key that the Machine announces", err)
		}
		if machine != nil {
			announced = append(announced, machine.Annotations[v1alpha1.AnnotationExpectedHostKey])
		}
	}
	expected, err := hostkey.Expected(announced...)
	if err != nil {
		return nil, &obstacle{
			condition: v1alpha1.ConditionReachable, reason: string(remote.ReasonHostKeyUnexpected), err: err,
			message: "It is not known which host key is the right one: " + err.Error() + ".",
			next:    "Nothing is sent to the host. Correct the annotation, or take it away.",
		}
	}
	return expected, nil
}

// pinHostKey notes the key that the host has shown; first tells that none was pinned before, on the Node neither.
func (s *scope) pinHostKey(key remote.HostKey, first bool) {
	encoded := base64.StdEncoding.EncodeToString(key.Data)
	before := s.instance.Status.HostKey
	if before != nil && before.Key == encoded {
		return
	}
	s.instance.Status.HostKey = &v1alpha1.HostKey{Type: key.Type, Key: encoded, Fingerprint: key.Fingerprint()}
	// What was learnt of the host behind another key does not count for this one, and what lies there is not known to be ours.
	s.instance.Status.Host, s.session.spec = nil, ""
	if first || before != nil {
		s.emit(hostKeyPinned(s.instance, first))
	}
}

// stillRestarting is the wait for a host that is away because it restarts; nil when it is not, or takes too long.
func (s *scope) stillRestarting() *obstacle {
	since := s.instance.Status.RestartStartedAt
	if since == nil || s.Clock.Since(since.Time) > rebootLimit {
		return nil
	}
	return s.awaitHost()
}

// answersWhileRestarting is the wait for a host that answers over SSH and cannot be asked: it goes down, or comes up, or something is wrong with it,
// and only time tells. Else it is what stands in the way itself.
func (s *scope) answersWhileRestarting(o *obstacle) *obstacle {
	restarting := s.stillRestarting()
	if restarting == nil {
		return o
	}
	restarting.message += " It answers over SSH, but not the agent on it: " + o.message
	return restarting
}

// restartLimit is how long a host may keep its boot id after it said that it restarts. Then it has not: the agent is asked again.
const restartLimit = 2 * time.Minute

// awaitRestart waits while a host that was to restart still answers from before: what it is told then would be lost. It ends the wait
// when the host is back, or has not restarted after all.
func (s *scope) awaitRestart(facts *plan.Facts) *obstacle {
	since := s.instance.Status.RestartStartedAt
	if since == nil {
		return nil
	}
	before := s.instance.Status.Host != nil && s.instance.Status.Host.BootID == facts.System.BootID
	if before && s.Clock.Since(since.Time) < restartLimit {
		s.session.forgetHost()
		s.Hosts.Close(s.instance.Name)
		return s.awaitHost()
	}
	if !before {
		s.emit(hostRestarted(s.instance))
	}
	s.session.restartLooks, s.instance.Status.RestartStartedAt = 0, nil
	meta.SetStatusCondition(&s.instance.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionPrepared, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotYet,
		Message: "The host was restarted.", LastTransitionTime: metav1.NewTime(s.Clock.Now()),
	})
	return nil
}

// beginRestart notes that the host has said that it restarts, and lets the connection go.
func (s *scope) beginRestart() *obstacle {
	s.session.forgetHost()
	s.Hosts.Close(s.instance.Name)
	s.instance.Status.RestartStartedAt = ptr.To(metav1.NewTime(s.Clock.Now()))
	return s.awaitHost()
}

// awaitHost counts the looks at a host that restarts, and waits for the next one.
func (s *scope) awaitHost() *obstacle {
	s.session.waiting = ""
	s.session.restartLooks++
	return rebootObstacle(s.session.restartLooks)
}

// rebootObstacle is the wait for the next look at a host that restarts, after so many.
func rebootObstacle(looks int) *obstacle {
	return &obstacle{
		condition: v1alpha1.ConditionPrepared, reason: v1alpha1.ReasonRebooting, outcome: wait, keepsTurn: true,
		after:   min(firstRebootPoll<<min(looks-1, 8), lastRebootPoll),
		message: "The host restarts.",
		next:    fmt.Sprintf("The operator waits until the host has a new boot id, at most %d minutes.", int(rebootLimit.Minutes())),
	}
}

// connectObstacle puts a failed connection into the words of the status.
func connectObstacle(err error) *obstacle {
	o := &obstacle{condition: v1alpha1.ConditionReachable, reason: string(remote.ReasonUnreachable), message: err.Error(), err: err}
	var failed *remote.Error
	if errors.As(err, &failed) {
		o.failedBy(err, failed)
	}
	return o
}

// failedBy fills in what a connection or a run of the agent has failed by.
func (o *obstacle) failedBy(err error, failed *remote.Error) {
	o.reason, o.keyRefused = string(failed.Reason), failed.Reason == remote.ReasonAuthenticationFailed
	if failed.Reason == remote.ReasonAgentDidNotStart {
		o.outcome = changeFailed
	}
	o.message, o.next = messageAndNext(err, failed)
}

// messageAndNext parts an error that says both into two sentences, since the status has a place for each.
func messageAndNext(err error, failed *remote.Error) (message, next string) {
	message = strings.TrimSuffix(err.Error(), "; "+failed.Next)
	if failed.Next == "" {
		return message, ""
	}
	return message, strings.ToUpper(failed.Next[:1]) + failed.Next[1:] + "."
}
