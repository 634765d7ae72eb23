package sshkeysecret

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// SecretPreviousKey is the key in the Secret that may hold the replaced private key. The operator uses it to log in
// to hosts that refuse the current key, and adds the current public key there.
const SecretPreviousKey = "previous-private-key.pem"

// Previous returns the private key that the current one replaced, and whether there is one. Errors name the Secret
// and the key, but never contain secret data. ErrInvalid means that the key exists but cannot be used.
func Previous(ctx context.Context, reader client.Reader, namespace string) (sshkey.Key, bool, error) {
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: SecretName}, secret); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return sshkey.Key{}, false, nil
		}
		return sshkey.Key{}, false, fmt.Errorf("read Secret %s/%s: %w", namespace, SecretName, err)
	}
	return parsePreviousKey(secret)
}

func parsePreviousKey(secret *corev1.Secret) (sshkey.Key, bool, error) {
	data, ok := secret.Data[SecretPreviousKey]
	if !ok || len(data) == 0 {
		return sshkey.Key{}, false, nil
	}
	key, err := sshkey.Parse(data)
	if err != nil {
		return sshkey.Key{}, false, fmt.Errorf("%w: key %s of Secret %s in namespace %s: %w", ErrInvalid, SecretPreviousKey,
			secret.Name, secret.Namespace, err)
	}
	return key, true, nil
}
