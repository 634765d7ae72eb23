package testenv

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// generateKey creates the key of the operator and of new hosts, as an administrator does with ssh-keygen.
func (r *Environment) generateKey(context.Context) error {
	private, key, err := r.newKey()
	if err != nil {
		return err
	}
	r.privateKey, r.key, r.templateKey = private, key, key
	return nil
}

func (r *Environment) newKey() ([]byte, sshkey.Key, error) {
	_, private, err := ed25519.GenerateKey(r.options.Rand)
	if err != nil {
		return nil, sshkey.Key{}, fmt.Errorf("make an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "windows-nodes")
	if err != nil {
		return nil, sshkey.Key{}, fmt.Errorf("encode the SSH key: %w", err)
	}
	data := pem.EncodeToMemory(block)
	key, err := sshkey.Parse(data)
	if err != nil {
		return nil, sshkey.Key{}, fmt.Errorf("read the SSH key: %w", err)
	}
	return data, key, nil
}

// publicKey returns the key that administrators currently install on new hosts.
func (r *Environment) publicKey() ssh.PublicKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.key.Signer().PublicKey()
}

// imageKey returns the key in the templates that administrators created.
func (r *Environment) imageKey() ssh.PublicKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.templateKey.Signer().PublicKey()
}

// PublicKey returns the public key of the operator's private key.
func (r *Environment) PublicKey() ssh.PublicKey { return r.publicKey() }

// PrivateKey returns the private key that new hosts accept, in OpenSSH form.
func (r *Environment) PrivateKey() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.privateKey
}

// RotateKey replaces the key with a new one, in the Secret and for BYOH hosts that are added later. Existing hosts,
// and the templates of vSphere and Nutanix, accept only the old key. With keepPrevious, the Secret contains the old
// key as well.
func (r *Environment) RotateKey(ctx context.Context, keepPrevious bool) error {
	private, key, err := r.newKey()
	if err != nil {
		return err
	}
	data := map[string][]byte{privateKeySecretKey: private}
	if keepPrevious {
		data[sshkeysecret.SecretPreviousKey] = r.PrivateKey()
	}
	if err := r.setKeys(ctx, data); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.privateKey, r.key = private, key
	return nil
}

// KeyHash returns the annotation pub-key-hash of a Node that accepts the current key.
func (r *Environment) KeyHash() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.key.Hash()
}
