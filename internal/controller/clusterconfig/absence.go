package clusterconfig

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/internal/policy/absence"
)

// lastingAbsence is how long a Secret must be absent to count as such. Secrets are renewed by deleting them, the
// service CA operator's among them: without this, every node would lose what they hold and get it again a moment later.
const lastingAbsence = absence.Grace

// secretsReader is a reader that gives Secrets that are absent for a moment as they were. All that cluster.Read reads
// are optional.
type secretsReader struct {
	client.Reader
	clock   clock.PassiveClock
	secrets map[types.NamespacedName]keptSecret
}

// Get reads an object.
func (r *secretsReader) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, object, options...)
	secret, ok := object.(*corev1.Secret)
	switch {
	case ok && err == nil:
		r.secrets[key] = r.secrets[key].found(secret.DeepCopy())
	case ok && apierrors.IsNotFound(err):
		before := r.secrets[key]
		now := before.missing(r.clock.Now())
		r.secrets[key] = now
		if now.given == nil {
			return err
		}
		if !before.Began() {
			log.FromContext(ctx).Info("a Secret is absent; for some time nodes keep what it contained", "secret", key,
				"time", lastingAbsence)
		}
		now.given.DeepCopyInto(secret)
		return nil
	}
	return err
}

// confirm remembers the Secrets of a read of the cluster that was good.
func (r *secretsReader) confirm() {
	for key, secret := range r.secrets {
		r.secrets[key] = secret.confirmed()
	}
}

// next returns the time until an absence will have lasted, at most limit.
func (r *secretsReader) next(limit time.Duration) time.Duration {
	for _, secret := range r.secrets {
		if left := secret.left(r.clock.Now()); left > 0 {
			limit = min(limit, left)
		}
	}
	return limit
}

// keptSecret is what is known of a Secret.
type keptSecret struct {
	// last is the Secret of the last good read of the cluster, and given that of the last read; nil for absent, or not
	// read yet.
	last, given *corev1.Secret
	absence.Absence
}

// found is after the Secret was read.
func (k keptSecret) found(secret *corev1.Secret) keptSecret {
	return keptSecret{last: k.last, given: secret}
}

// missing is after the Secret was not there.
func (k keptSecret) missing(now time.Time) keptSecret {
	k.Absence, k.given = k.Continued(now), nil
	if k.left(now) > 0 {
		k.given = k.last
	}
	return k
}

// confirmed is after a good read of the cluster.
func (k keptSecret) confirmed() keptSecret {
	k.last = k.given
	return k
}

// left returns the time until the absence will have lasted; not above zero when it counts, or there is none.
func (k keptSecret) left(now time.Time) time.Duration {
	if k.last == nil {
		return 0
	}
	return k.Left(now, lastingAbsence)
}
