package instance

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/sanitize"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// connectPhase is the phase that connects to the host.
type connectPhase struct {
	client    client.Client // for the previous key and the other instances
	machines  nodes.Machines
	events    status.Recorder
	jitter    func() float64
	namespace string // of the operator
}

// reconcile connects to the host, or reuses a connection, and pins the host key at the first contact. The pin is
// written before anything is sent to the host.
func (p connectPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	announced, o := p.readAnnouncedHostKey(ctx, s)
	if o != nil {
		return o
	}
	target, o := hostjobs.TargetOf(s.Instance, s.Key, s.Cluster, announced)
	if o != nil {
		return o
	}
	connected, pending, err := s.Host.Connect(hostjobs.ConnectRequest{
		Target: target, Instance: s.Initial,
		WithHostKey: index.Instances{Cache: p.client, Namespace: p.namespace}.WithHostKey,
		Previous: func(ctx context.Context) (sshkey.Key, bool, error) {
			return sshkeysecret.Previous(ctx, p.client, p.namespace)
		},
	})
	switch {
	case pending != nil:
		return pending
	case err != nil:
		return p.connectFailed(s, err)
	case connected.Authorized:
		p.events.Emit(status.SSHKeyAuthorizedEvent(s.Instance, target.Key.Fingerprint()))
	}
	p.pinHostKey(s, connected.Presented(), s.Instance.Status.HostKey == nil)
	s.MarkTrue(v1alpha1.ConditionReachable, "The host presents its pinned host key over SSH and accepts the operator's key.")
	return nil
}

// connectFailed returns the result of a failed connection.
func (p connectPhase) connectFailed(s *scope.Scope, err error) *result.Result {
	// A failure during a restart is temporary, except for another host key.
	if o := s.AwaitHostReturn(); o != nil && !hostjobs.IsAnotherHost(err) {
		return o
	}
	if errors.Is(err, hostjobs.ErrTimedOut) {
		return hostjobs.TimeoutResult(v1alpha1.ConditionReachable)
	}
	if o := p.awaitUserData(s, err); o != nil {
		return o
	}
	return explainKeyNotAccepted(s, hostjobs.ResultFromConnectError(err))
}

// readAnnouncedHostKey returns the fingerprint of the host key that the instance's Machine announces for the first
// contact; "" for none. The Machine API itself announces none on any platform.
func (p connectPhase) readAnnouncedHostKey(ctx context.Context, s *scope.Scope) (string, *result.Result) {
	if !s.HasMachine() || s.Instance.Status.HostKey != nil {
		return "", nil
	}
	machine, err := p.machines.Get(ctx, s.Instance)
	if err != nil {
		return "", result.FromAPIError(v1alpha1.ConditionReachable, "read the expected host key from the Machine", err)
	}
	if machine == nil {
		return "", nil
	}
	return machine.Annotations[v1alpha1.AnnotationExpectedHostKey], nil
}

// pinHostKey records the host key presented by the host. first is true if no key was pinned before, including on
// the Node.
func (p connectPhase) pinHostKey(s *scope.Scope, key v1alpha1.HostKey, first bool) {
	before := s.Instance.Status.HostKey
	if before != nil && before.Key == key.Key {
		return
	}
	s.Instance.Status.HostKey = &key
	// Facts of the host with the former key do not apply, and its files may be foreign.
	s.Instance.Status.Host, s.Session.WaitSpecDigest = nil, ""
	if first || before != nil {
		p.events.Emit(status.HostKeyPinnedEvent(s.Instance, first))
	}
}

// explainKeyNotAccepted explains that a node remains in service with its former key.
func explainKeyNotAccepted(s *scope.Scope, o *result.Result) *result.Result {
	if !s.KeyDiffers {
		return o
	}
	o.Message = "The key of Secret " + sshkeysecret.SecretName +
		" was changed, and the operator has not connected to the host with the new key yet. Its node stays in service: " + o.Message
	if !o.SSHKeyRejected {
		return o
	}
	hint := "If that Secret contains the previous key as " + sshkeysecret.SecretPreviousKey +
		", the operator installs the new key on the host."
	if s.HasMachine() {
		hint += " Otherwise the operator replaces Machines that get their key from its user data, one at a time."
	}
	o.NextAction = sanitize.Sentence(o.NextAction) + " " + hint
	return o
}
