package hostjobs

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// ConnectRequest is the input of a connection. The functions are called by the job.
type ConnectRequest struct {
	Target   remote.Target
	Instance *v1alpha1.WindowsInstance
	// WithHostKey returns the instances of hosts with a host key.
	WithHostKey func(ctx context.Context, key string) ([]v1alpha1.WindowsInstance, error)
	// Previous returns the key that the current key has replaced, and reports whether there is one.
	Previous func(context.Context) (sshkey.Key, bool, error)
}

// Connected is a connection to a host.
type Connected struct {
	*remote.Connection
	// Authorized is true if the current key was added to the authorized keys of the host.
	Authorized bool
}

// Presented returns the host key that the host has presented.
func (c Connected) Presented() v1alpha1.HostKey {
	key := c.HostKey()
	return v1alpha1.HostKey{Type: key.Type, Key: base64.StdEncoding.EncodeToString(key.Data), Fingerprint: key.Fingerprint()}
}

// connectStatusDelay is the time before the status reports a first contact. Most hosts respond within this time, and
// the status is then written with the result.
const connectStatusDelay = time.Second

// Connect connects to the host, or reuses the connection. An accepted host key replaces the pinned one. If the
// host refuses the current SSH key, the job logs in with the previous key and authorizes the current one. Nothing
// else is sent to the host.
func (h *Host) Connect(request ConnectRequest) (connected Connected, pending *result.Result, err error) {
	c := h.Connection
	hasOutcome := h.ended != nil && h.ended.connection != nil && h.ended.connection == c // of a job over the connection, which may have closed it
	if c != nil && c.HasTarget(request.Target) && (hasOutcome || c.IsAlive()) {
		return Connected{Connection: c}, nil, nil
	}
	h.ForgetHost()
	h.Restored = false
	target := request.Target
	show := workingResult(v1alpha1.ConditionReachable, "")
	show.StatusDelay = connectStatusDelay
	show.NextAction = fmt.Sprintf("The operator connects to %s over SSH, with a timeout of %s.", target.Address,
		remote.DefaultDialTimeout+remote.DefaultHandshakeTimeout)
	key := Key{KindConnect, fmt.Sprint(target.Address, " ", target.Port, " ", target.User, " ", target.Key.Hash(), " ", target.Expected, " ", target.HostKey)}
	hosts := h.runner.hosts
	connected, pending, err = Do(h, key, show, func(ctx context.Context, _ *Handle) (Connected, error) {
		connected, err := request.openConnection(ctx, hosts)
		if err == nil {
			hosts.Release(connected.Connection)
		}
		return connected, err
	})
	if pending == nil && err == nil {
		h.Connection = connected.Connection
	}
	return connected, pending, err
}

func (r ConnectRequest) openConnection(ctx context.Context, hosts *remote.Pool) (Connected, error) {
	connection, err := hosts.Get(ctx, r.Target)
	var changed *remote.HostKeyChangedError
	if errors.As(err, &changed) {
		accepted, refusal := r.isHostKeyAccepted(ctx, changed)
		if refusal != nil {
			return Connected{}, refusal
		}
		if accepted {
			r.Target.HostKey = &changed.Presented
			connection, err = hosts.Get(ctx, r.Target)
		}
	}
	if remote.ReasonOf(err) != remote.ReasonAuthenticationFailed {
		return Connected{Connection: connection}, err
	}
	return r.openWithPrevious(ctx, hosts, err)
}

// openWithPrevious logs in with the previous key, authorizes the current one, and reconnects with the current
// one. If there is no previous key, or the host also refuses the previous key, the error for the current key is
// returned.
func (r ConnectRequest) openWithPrevious(ctx context.Context, hosts *remote.Pool, refused error) (Connected, error) {
	previous, found, err := r.Previous(ctx)
	if err != nil {
		log.FromContext(ctx).Info("the previous SSH private key cannot be used", "reason", err.Error())
		return Connected{}, refused
	}
	if !found || previous.Hash() == r.Target.Key.Hash() {
		return Connected{}, refused
	}
	before := r.Target
	before.Key = previous
	connection, err := hosts.Get(ctx, before)
	if remote.ReasonOf(err) == remote.ReasonAuthenticationFailed {
		return Connected{}, refused
	}
	if err != nil {
		return Connected{}, err
	}
	err = remote.Authorize(ctx, connection, r.Target.Key.Signer().PublicKey(), r.Target.User)
	hosts.Release(connection)
	if err != nil {
		return Connected{}, err
	}
	// The same host must respond to this connection.
	known := connection.HostKey()
	r.Target.HostKey = &known
	again, err := hosts.Get(ctx, r.Target)
	return Connected{again, true}, err
}
