package instance

import (
	"context"
	"errors"

	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/keys"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// connect brings a connection to the target. A changed host key that an administrator has accepted is taken. A host that refuses the
// present key is opened with the one that it replaced, where there is one, and given the present one.
func (s *scope) connect(ctx context.Context, target remote.Target) (*remote.Connection, error) {
	connection, err := s.Hosts.Get(ctx, target)
	var changed *remote.HostKeyChangedError
	if errors.As(err, &changed) && s.accepts(changed.Presented) {
		target.HostKey = &changed.Presented
		connection, err = s.Hosts.Get(ctx, target)
	}
	if remote.ReasonOf(err) != remote.ReasonAuthenticationFailed {
		return connection, err
	}
	return s.openWithPrevious(ctx, target, err)
}

// openWithPrevious logs in with the previous key, authorizes the present one, and connects anew with that. Without a previous key, or if
// the host refuses it too, the refusal of the present one stands.
func (s *scope) openWithPrevious(ctx context.Context, target remote.Target, refused error) (*remote.Connection, error) {
	previous, found, err := keys.Previous(ctx, s.Client, s.Namespace)
	if err != nil {
		log.FromContext(ctx).Info("the previous SSH private key cannot be used", "reason", err.Error())
		return nil, refused
	}
	if !found || previous.Hash() == target.Key.Hash() {
		return nil, refused
	}
	before := target
	before.Key = previous
	connection, err := s.Hosts.Get(ctx, before)
	if remote.ReasonOf(err) == remote.ReasonAuthenticationFailed {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	err = remote.Authorize(ctx, connection, publicKey(target), target.User)
	s.Hosts.Release(connection)
	if err != nil {
		return nil, err
	}
	// It is this very host that must answer now.
	known := connection.HostKey()
	target.HostKey = &known
	again, err := s.Hosts.Get(ctx, target)
	if err == nil {
		s.emit(keyAuthorized(s.instance, target.Key.Fingerprint()))
	}
	return again, err
}

func publicKey(target remote.Target) ssh.PublicKey { return target.Key.Signer().PublicKey() }

// adoptKey notes the present key on a host that was reached with it and is otherwise what it should be: nothing on it is to be done.
func (r *Reconciler) adoptKey(ctx context.Context, s *scope) *obstacle {
	if !s.onlyKeyDiffers {
		return nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.released(node) {
		return nil // it has changed just now: the phases look at it
	}
	if err := s.markNode(ctx, node); err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "annotate the Node with the key", err)
	}
	s.instance.Status.PublicKeyHash = s.key.Hash()
	s.emit(keyAdopted(s.instance, s.key.Fingerprint()))
	s.session.forgetHost()
	r.Hosts.Close(s.instance.Name)
	return s.nothingToDo(ctx)
}

// awaitsKey puts into words that a node goes on with the key that it was configured with.
func (s *scope) awaitsKey(o *obstacle) *obstacle {
	if !s.keyDiffers {
		return o
	}
	o.message = "The key of Secret " + keys.SecretName + " was changed, and the host was not reached with the new one yet. Its node goes on as it is: " + o.message
	if !o.keyRefused {
		return o
	}
	hint := "With the key before as " + keys.SecretPreviousKey + " in that Secret, the operator brings the new one to the host by itself."
	if s.ofMachine() {
		hint += " Else a Machine that gets its key from the operator's user data is replaced when its turn comes, one at a time."
	}
	o.next = sentence(o.next) + " " + hint
	return o
}
