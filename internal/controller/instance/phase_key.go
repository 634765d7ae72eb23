package instance

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
)

// sshKeyPhase is the phase that reads the operator's SSH key.
type sshKeyPhase struct {
	client    client.Client
	namespace string // of the operator
}

// reconcile reads the SSH private key. If the key is missing or invalid, the phase waits, because the Secret is
// watched.
func (p sshKeyPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	key, err := sshkeysecret.Read(ctx, p.client, p.namespace)
	if err == nil {
		s.Key = key
		return nil
	}
	o := &result.Result{
		Condition: v1alpha1.ConditionReachable, Reason: v1alpha1.ReasonPrivateKeyInvalid,
		Outcome: result.Blocked,
		Message: err.Error(), NextAction: sshkeysecret.FixHint(p.namespace),
	}
	switch {
	case errors.Is(err, sshkeysecret.ErrMissing):
		o.Reason = v1alpha1.ReasonPrivateKeyMissing
	case !errors.Is(err, sshkeysecret.ErrInvalid):
		o.Outcome = result.Retry
	}
	return o
}
