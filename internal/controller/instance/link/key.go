package link

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/keys"
	"github.com/windows-machine-config/wmco/internal/controller/lookup"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/text"
)

// connect brings a connection to the target. A changed host key that an administrator has accepted is taken, unless it
// belongs to the host of another node. A host that refuses the present key is opened with the one that it replaced, where
// there is one, and given the present one.
func (l *Link) connect(ctx context.Context, s *scope.Scope, target remote.Target) (*remote.Connection, error) {
	connection, err := l.Hosts.Get(ctx, target)
	var changed *remote.HostKeyChangedError
	if errors.As(err, &changed) {
		holder, lookupErr := l.holderOf(ctx, s, changed.Presented)
		switch {
		case lookupErr != nil:
			return nil, lookupErr
		case nodeidentity.HostKeyAccepted(s.Instance, changed.Presented.Fingerprint()) && nodeidentity.CanAcceptHostKey(s.Instance, holder):
			target.HostKey = &changed.Presented
			connection, err = l.Hosts.Get(ctx, target)
		case holder != nil:
			return nil, keyOfAnotherHost(s.Instance, holder, changed)
		}
	}
	if remote.ReasonOf(err) != remote.ReasonAuthenticationFailed {
		return connection, err
	}
	return l.openWithPrevious(ctx, s, target, err)
}

// openWithPrevious logs in with the previous key, authorizes the present one, and connects again with that. Without a
// previous key, or if the host refuses it too, the refusal of the present one stands.
func (l *Link) openWithPrevious(ctx context.Context, s *scope.Scope, target remote.Target,
	refused error) (*remote.Connection, error) {
	previous, found, err := keys.Previous(ctx, l.Client, l.Namespace)
	if err != nil {
		log.FromContext(ctx).Info("the previous SSH private key cannot be used", "reason", err.Error())
		return nil, refused
	}
	if !found || previous.Hash() == target.Key.Hash() {
		return nil, refused
	}
	before := target
	before.Key = previous
	connection, err := l.Hosts.Get(ctx, before)
	if remote.ReasonOf(err) == remote.ReasonAuthenticationFailed {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	err = remote.Authorize(ctx, connection, publicKey(target), target.User)
	l.Hosts.Release(connection)
	if err != nil {
		return nil, err
	}
	// It is this very host that must answer now.
	known := connection.HostKey()
	target.HostKey = &known
	again, err := l.Hosts.Get(ctx, target)
	if err == nil {
		l.Events.Emit(event.KeyAuthorized(s.Instance, target.Key.Fingerprint()))
	}
	return again, err
}

// holderOf returns the other instance that has the presented host key pinned; nil for none.
func (l *Link) holderOf(ctx context.Context, s *scope.Scope, presented remote.HostKey) (*v1alpha1.WindowsInstance, error) {
	key := base64.StdEncoding.EncodeToString(presented.Data)
	others, err := lookup.Instances{Cache: l.Client, Namespace: l.Namespace}.WithHostKey(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("find the instance of a changed host key: %w", err)
	}
	return nodeidentity.HostKeyHolder(s.Instance, key, others), nil
}

// ExplainChangedKey returns the error of a connection to the host of an instance. If the host presented the pinned key of
// another instance, the error reports that instance. instances are all instances.
func ExplainChangedKey(instance *v1alpha1.WindowsInstance, instances []v1alpha1.WindowsInstance, err error) error {
	var changed *remote.HostKeyChangedError
	if !errors.As(err, &changed) {
		return err
	}
	holder := nodeidentity.HostKeyHolder(instance, base64.StdEncoding.EncodeToString(changed.Presented.Data), instances)
	if holder == nil {
		return err
	}
	return keyOfAnotherHost(instance, holder, changed)
}

// keyOfAnotherHost returns the error for a host that presents the pinned key of another instance. Acceptance is not
// suggested: the operator would configure, restart and restore the host of another node.
func keyOfAnotherHost(instance, holder *v1alpha1.WindowsInstance, changed *remote.HostKeyChangedError) error {
	message := fmt.Sprintf("the host presents the SSH host key %s (%s) of %s, but the pinned key is %s (%s): "+
		"the addresses of the hosts may have been swapped, or the hosts were made from one image", changed.Presented.Fingerprint(),
		changed.Presented.Type, nodeidentity.DescribeHolder(holder), changed.Pinned.Fingerprint(), changed.Pinned.Type)
	if nodeidentity.HostKeyAccepted(instance, changed.Presented.Fingerprint()) {
		message += ". The annotation " + v1alpha1.AnnotationAcceptHostKey + " has no effect for the host key of another node"
	}
	return &remote.Error{Reason: remote.ReasonHostKeyChanged, Host: instance.Spec.Address, Stage: remote.StageHostKey, Err: changed,
		Message: message,
		Next: "the operator sends nothing to the host. Give the hosts their addresses back, or correct the list of hosts. " +
			"If the host was reinstalled from an image with keys in it, make new host keys on it: delete C:\\ProgramData\\ssh\\ssh_host_*, " +
			"run ssh-keygen -A, and restart the service sshd"}
}

func publicKey(target remote.Target) ssh.PublicKey { return target.Key.Signer().PublicKey() }

// awaitsKey explains that a node continues with the key that it was configured with.
func (l *Link) awaitsKey(s *scope.Scope, o *obstacle.Obstacle) *obstacle.Obstacle {
	if !s.KeyDiffers {
		return o
	}
	o.Message = "The key of Secret " + keys.SecretName +
		" was changed, and the host was not reached with the new one yet. Its node goes on as it is: " + o.Message
	if !o.KeyRefused {
		return o
	}
	hint := "With the key before as " + keys.SecretPreviousKey +
		" in that Secret, the operator brings the new one to the host by itself."
	if s.OfMachine() {
		hint += " Else a Machine that gets its key from the operator's user data is replaced when its turn comes, one at a time."
	}
	o.Next = text.Sentence(o.Next) + " " + hint
	return o
}
