// Package sshkeysecret reads the SSH private key of the operator, keeps the user data of new Machines in sync with
// it, and reports an unusable key.
package sshkeysecret

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/sshkey"
)

const (
	// SecretName is the Secret in the operator's namespace that an administrator creates.
	SecretName = "cloud-private-key"
	// SecretKey is the key in the Secret that holds the private key.
	SecretKey = "private-key.pem"
)

var (
	// ErrMissing means that the Secret or its key does not exist.
	ErrMissing = errors.New("the SSH private key is missing")
	// ErrInvalid means that the Secret contains no usable private key.
	ErrInvalid = errors.New("the SSH private key cannot be used")
)

// Read returns the current private key. Errors name the Secret and the key, but never contain secret data.
func Read(ctx context.Context, reader client.Reader, namespace string) (sshkey.Key, error) {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: SecretName}, secret)
	if apierrors.IsNotFound(err) {
		return sshkey.Key{}, fmt.Errorf("%w: Secret %s does not exist in namespace %s", ErrMissing, SecretName, namespace)
	}
	if err != nil {
		return sshkey.Key{}, fmt.Errorf("read Secret %s/%s: %w", namespace, SecretName, err)
	}
	return parsePrivateKey(secret)
}

func parsePrivateKey(secret *corev1.Secret) (sshkey.Key, error) {
	data, ok := secret.Data[SecretKey]
	if !ok {
		return sshkey.Key{}, fmt.Errorf("%w: Secret %s in namespace %s has no key %s", ErrMissing, secret.Name,
			secret.Namespace, SecretKey)
	}
	key, err := sshkey.Parse(data)
	if err != nil {
		return sshkey.Key{}, fmt.Errorf("%w: key %s of Secret %s in namespace %s: %w", ErrInvalid, SecretKey, secret.Name,
			secret.Namespace, err)
	}
	return key, nil
}

// FixHint describes how an administrator corrects a missing or unusable key.
func FixHint(namespace string) string {
	return "Store it with: oc create secret generic " + SecretName + " --from-file=" + SecretKey +
		"=<path of the private key> -n " + namespace +
		" --dry-run=client -o yaml | oc apply -f -"
}
