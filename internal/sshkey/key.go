// Package sshkey reads the private key for the operator's login to Windows hosts, and keeps it out of logs and
// messages.
package sshkey

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"
)

// redacted replaces every printed Key.
const redacted = "[redacted SSH private key]"

// Key is a private key. Printing or encoding it never discloses the key. The zero Key signs nothing.
type Key struct {
	// Algorithm is the SSH name of the key's type: "ssh-rsa", "ssh-ed25519", "ecdsa-sha2-nistp256", …
	Algorithm string

	signer        ssh.Signer
	authorizedKey string
}

// newKey returns a Key for a crypto.Signer of the standard library.
func newKey(private any) (Key, error) {
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return Key{}, errors.New("SSH does not support the type or curve of the key")
	}
	public := signer.PublicKey()
	return Key{
		Algorithm:     public.Type(),
		signer:        signer,
		authorizedKey: strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(public)), "\n"),
	}, nil
}

// Signer returns the signer for logins; nil for the zero Key.
func (k Key) Signer() ssh.Signer { return k.signer }

// AuthorizedKey returns the line for a host's authorized_keys file, without comment and without newline.
func (k Key) AuthorizedKey() string { return k.authorizedKey }

// Hash returns the lowercase hex SHA-256 of AuthorizedKey, the value of the annotation pub-key-hash of Nodes.
func (k Key) Hash() string {
	sum := sha256.Sum256([]byte(k.authorizedKey))
	return hex.EncodeToString(sum[:])
}

// Fingerprint returns the fingerprint of the public key as printed by ssh-keygen -l, "SHA256:…"; empty for the
// zero Key.
func (k Key) Fingerprint() string {
	if k.signer == nil {
		return ""
	}
	return ssh.FingerprintSHA256(k.signer.PublicKey())
}

// String does not show the key.
func (k Key) String() string { return redacted }

// GoString does not show the key.
func (k Key) GoString() string { return redacted }

// Format does not show the key, for any verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON does not show the key.
func (k Key) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText does not show the key.
func (k Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalLog does not show the key to structured loggers.
func (k Key) MarshalLog() any { return redacted }
