package instance

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/remote"
)

const (
	// rebootLimit is how long a host may take to come back before it counts as unreachable.
	rebootLimit = 15 * time.Minute
	// rebootPoll is the time between two looks at a host that restarts.
	rebootPoll = 2 * time.Second
)

// reach connects to the host, or takes the connection that is there, and pins its host key at first contact.
func (r *Reconciler) reach(ctx context.Context, s *scope) *obstacle {
	target, err := s.target(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReachable, "find the pinned host key", err)
	}
	if err := s.announceContact(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionReachable, "say that the host is being contacted", err)
	}
	connection, err := r.Hosts.Get(ctx, target)
	var changed *remote.HostKeyChangedError
	if errors.As(err, &changed) && s.accepts(changed.Presented) {
		target.HostKey = &changed.Presented
		connection, err = r.Hosts.Get(ctx, target)
	}
	if err != nil {
		s.session.forgetHost()
		if o := s.stillRebooting(); o != nil {
			return o
		}
		return connectObstacle(err)
	}
	if s.session.connection != connection {
		s.session.forgetHost()
		s.session.connection = connection
	}
	s.connection = connection
	s.pinHostKey(connection.HostKey())
	s.pass(v1alpha1.ConditionReachable, "The host answers over SSH with its pinned key and accepts the operator's.")
	// The pin is written before anything is sent to the host.
	if err := s.patchStatus(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionReachable, "pin the host key", err)
	}
	return nil
}

// announceContact says what is waited for while nothing is known of the host. Later on the status has what was found last.
func (s *scope) announceContact(ctx context.Context) error {
	if meta.FindStatusCondition(s.instance.Status.Conditions, v1alpha1.ConditionReachable) != nil || s.instance.Status.Summary != "" {
		return nil
	}
	s.instance.Status.Summary = v1alpha1.ReasonInProgress
	s.instance.Status.NextAction = fmt.Sprintf("The operator connects to %s over SSH. The host has %s to answer.",
		s.instance.Spec.Address, remote.DefaultDialLimit+remote.DefaultHandshakeLimit)
	return s.patchStatus(ctx)
}

// accepts tells whether an administrator has accepted exactly this changed host key.
func (s *scope) accepts(key remote.HostKey) bool {
	return s.instance.Annotations[v1alpha1.AnnotationAcceptHostKey] == key.Fingerprint()
}

// target says whom to connect to, and which host key must answer.
func (s *scope) target(ctx context.Context) (remote.Target, error) {
	target := remote.Target{
		Instance: s.instance.Name, Namespace: s.instance.Namespace,
		Address: s.instance.Spec.Address, User: s.instance.Spec.Username, Key: s.key,
	}
	pinned := s.instance.Status.HostKey
	if pinned == nil {
		var err error
		if pinned, err = s.hostKeyOfNode(ctx); err != nil {
			return remote.Target{}, err
		}
	}
	if pinned != nil {
		data, err := base64.StdEncoding.DecodeString(pinned.Key)
		if err != nil {
			return remote.Target{}, hostError("decode the pinned host key", s.instance, err)
		}
		target.HostKey = &remote.HostKey{Type: pinned.Type, Data: data}
	}
	return target, nil
}

// hostKeyOfNode finds the pin on the Node, where it outlives a deleted WindowsInstance.
func (s *scope) hostKeyOfNode(ctx context.Context) (*v1alpha1.HostKey, error) {
	var nodes corev1.NodeList
	if err := s.Client.List(ctx, &nodes); err != nil {
		return nil, hostError("list Windows nodes", s.instance, err)
	}
	for _, node := range nodes.Items {
		key := node.Annotations[v1alpha1.AnnotationHostKey]
		if key != "" && node.Annotations[v1alpha1.AnnotationInstance] == s.instance.Name {
			return &v1alpha1.HostKey{Type: node.Annotations[v1alpha1.AnnotationHostKeyType], Key: key}, nil
		}
	}
	return nil, nil
}

func (s *scope) pinHostKey(key remote.HostKey) {
	encoded := base64.StdEncoding.EncodeToString(key.Data)
	if pinned := s.instance.Status.HostKey; pinned != nil && pinned.Key == encoded {
		return
	}
	first := s.instance.Status.HostKey == nil
	s.instance.Status.HostKey = &v1alpha1.HostKey{Type: key.Type, Key: encoded, Fingerprint: key.Fingerprint()}
	s.emit(hostKeyPinned(s.instance, first))
}

// rebooting tells whether the operator waits for a restart that it asked for.
func (s *scope) rebooting() bool {
	condition := meta.FindStatusCondition(s.instance.Status.Conditions, v1alpha1.ConditionPrepared)
	return condition != nil && condition.Reason == v1alpha1.ReasonRebooting
}

// stillRebooting is the wait for a host that is away because it restarts; nil when it is not, or takes too long.
func (s *scope) stillRebooting() *obstacle {
	if !s.rebooting() {
		return nil
	}
	since := meta.FindStatusCondition(s.instance.Status.Conditions, v1alpha1.ConditionPrepared).LastTransitionTime
	if s.Clock.Since(since.Time) > rebootLimit {
		return nil
	}
	return rebootObstacle()
}

func rebootObstacle() *obstacle {
	return &obstacle{
		condition: v1alpha1.ConditionPrepared, reason: v1alpha1.ReasonRebooting, waiting: true, after: rebootPoll,
		message: "The host restarts.",
		next:    "The operator waits until the host has a new boot id, at most 15 minutes.",
	}
}

// connectObstacle puts a failed connection into the words of the status.
func connectObstacle(err error) *obstacle {
	o := &obstacle{condition: v1alpha1.ConditionReachable, reason: string(remote.ReasonUnreachable), message: err.Error(), err: err}
	var failed *remote.Error
	if errors.As(err, &failed) {
		o.reason = string(failed.Reason)
		o.message, o.next = messageAndNext(err, failed)
	}
	return o
}

// messageAndNext parts an error that says both into two sentences, since the status has a place for each.
func messageAndNext(err error, failed *remote.Error) (message, next string) {
	message = strings.TrimSuffix(err.Error(), "; "+failed.Next)
	if failed.Next == "" {
		return message, ""
	}
	return message, strings.ToUpper(failed.Next[:1]) + failed.Next[1:] + "."
}
