package rig

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/controller/keys"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// makeKey makes the key that hosts are given before the operator is, as an administrator does with ssh-keygen.
func (r *Rig) makeKey(context.Context) error {
	private, key, err := r.newKey()
	if err != nil {
		return err
	}
	r.privateKey, r.key, r.templateKey = private, key, key
	return nil
}

func (r *Rig) newKey() ([]byte, sshkey.Key, error) {
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

// publicKey returns the key that administrators put on new hosts now.
func (r *Rig) publicKey() ssh.PublicKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.key.Signer().PublicKey()
}

// imageKey returns the key in the templates that administrators made.
func (r *Rig) imageKey() ssh.PublicKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.templateKey.Signer().PublicKey()
}

// PublicKey returns the key that the operator's private key belongs to.
func (r *Rig) PublicKey() ssh.PublicKey { return r.publicKey() }

// PrivateKey returns the key that new hosts know, in OpenSSH form.
func (r *Rig) PrivateKey() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.privateKey
}

// RotateKey replaces the key by a new one, in the Secret and for bring-your-own hosts that are added later; existing
// hosts, and the templates of vSphere and Nutanix, know only the old one. With keepPrevious, the Secret holds that one
// as well.
func (r *Rig) RotateKey(ctx context.Context, keepPrevious bool) error {
	private, key, err := r.newKey()
	if err != nil {
		return err
	}
	data := map[string][]byte{privateKeySecretKey: private}
	if keepPrevious {
		data[keys.SecretPreviousKey] = r.PrivateKey()
	}
	if err := r.setKeys(ctx, data); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.privateKey, r.key = private, key
	return nil
}

// KeyHash returns the annotation pub-key-hash of a Node that is reached with the present key.
func (r *Rig) KeyHash() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.key.Hash()
}
