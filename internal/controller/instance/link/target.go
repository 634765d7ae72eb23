package link

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/netip"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// isAnotherHost reports whether the host that answers has shown a key that is not the one it must have.
func isAnotherHost(err error) bool {
	reason := remote.ReasonOf(err)
	return reason == remote.ReasonHostKeyChanged || reason == remote.ReasonHostKeyUnexpected
}

// Target returns the host to connect to, and the host key that must answer.
func (l *Link) Target(ctx context.Context, s *scope.Scope) (remote.Target, *obstacle.Obstacle) {
	target := remote.Target{
		Instance: s.Instance.Name, Namespace: s.Instance.Namespace,
		Address: s.Instance.Spec.Address, User: s.Instance.Spec.Username, Key: s.Key,
		NoHostAt: func(address netip.Addr) string { return nodename.NoHostAt(address, s.Cluster) },
	}
	if host := s.Instance.Status.Host; host != nil {
		target.ReachedAt = host.ReachedAt
	}
	if nodename.NamesAPIServer(target.Address, s.Cluster) {
		return target, &obstacle.Obstacle{
			Condition: v1alpha1.ConditionReachable, Reason: v1alpha1.ReasonInvalidEntry, Outcome: obstacle.NeedsAdministrator,
			Message: target.Address + " is the name of the cluster's API server, and no Windows host.",
			Next:    "Correct the entry. Nothing is sent there.",
		}
	}
	pinned := s.Instance.Status.HostKey
	if pinned == nil {
		var o *obstacle.Obstacle
		target.Expected, o = l.expectedHostKeys(ctx, s)
		return target, o
	}
	data, err := base64.StdEncoding.DecodeString(pinned.Key)
	if err != nil {
		return target, obstacle.API(v1alpha1.ConditionReachable, "read the pinned host key",
			fmt.Errorf("decode the pinned host key for host %s: %w", s.Instance.Spec.Address, err))
	}
	target.HostKey = &remote.HostKey{Type: pinned.Type, Data: data}
	return target, nil
}

// expectedHostKeys returns the fingerprints that the Machine or the instance announces for the first contact; none
// announce nothing. The Machine API itself tells none on any platform.
func (l *Link) expectedHostKeys(ctx context.Context, s *scope.Scope) ([]string, *obstacle.Obstacle) {
	announced := []string{s.Instance.Annotations[v1alpha1.AnnotationExpectedHostKey]}
	if s.OfMachine() {
		machine, err := l.Machines.Of(ctx, s.Instance)
		if err != nil {
			return nil, obstacle.API(v1alpha1.ConditionReachable, "read the host key that the Machine announces", err)
		}
		if machine != nil {
			announced = append(announced, machine.Annotations[v1alpha1.AnnotationExpectedHostKey])
		}
	}
	expected, err := nodeidentity.ExpectedHostKeys(announced...)
	if err != nil {
		return nil, &obstacle.Obstacle{
			Condition: v1alpha1.ConditionReachable, Reason: string(remote.ReasonHostKeyUnexpected),
			Message: "It is not known which host key is the right one: " + err.Error() + ".",
			Next:    "Nothing is sent to the host. Correct the annotation, or take it away.",
		}
	}
	return expected, nil
}

// pinHostKey notes the key that the host has shown; first tells that none was pinned before, on the Node neither.
func (l *Link) pinHostKey(s *scope.Scope, key remote.HostKey, first bool) {
	encoded := base64.StdEncoding.EncodeToString(key.Data)
	before := s.Instance.Status.HostKey
	if before != nil && before.Key == encoded {
		return
	}
	s.Instance.Status.HostKey = &v1alpha1.HostKey{Type: key.Type, Key: encoded, Fingerprint: key.Fingerprint()}
	// What was learnt of the host behind another key does not count for this one, and what lies there is not known to be
	// ours.
	s.Instance.Status.Host, s.Session.Spec = nil, ""
	if first || before != nil {
		l.Events.Emit(event.HostKeyPinned(s.Instance, first))
	}
}
