package remote

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"golang.org/x/crypto/ssh"
)

// HostKey is an SSH server's public key.
type HostKey struct {
	// Type is the SSH name of the key type: "ssh-ed25519".
	Type string
	// Data is the key in SSH wire format; a known_hosts line has the same bytes in base64.
	Data []byte
}

// Fingerprint returns "SHA256:…", as printed by ssh-keygen -l.
func (k HostKey) Fingerprint() string {
	sum := sha256.Sum256(k.Data)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// Equal reports whether both keys are the same.
func (k HostKey) Equal(other HostKey) bool {
	return k.Type == other.Type && bytes.Equal(k.Data, other.Data)
}

func hostKeyOf(key ssh.PublicKey) HostKey {
	return HostKey{Type: key.Type(), Data: key.Marshal()}
}

// checkHostKey compares the presented host key with the pinned key. If pinned is nil, any key is accepted.
func checkHostKey(pinned *HostKey, presented HostKey) error {
	if pinned == nil || pinned.Equal(presented) {
		return nil
	}
	return &HostKeyChangedError{Pinned: *pinned, Presented: presented}
}

// checkExpected compares the host key presented at the first contact with the announced fingerprints. If there are
// none, any key is accepted.
func checkExpected(expected []string, presented HostKey) error {
	if len(expected) == 0 || slices.Contains(expected, presented.Fingerprint()) {
		return nil
	}
	return &HostKeyUnexpectedError{Expected: expected, Presented: presented}
}

// checkHostKey returns an error unless the target accepts the presented host key.
func (t Target) checkHostKey(presented HostKey) error {
	if t.HostKey != nil {
		return checkHostKey(t.HostKey, presented)
	}
	return checkExpected(t.Expected, presented)
}

// minRSABits is the minimum length of an RSA host key in bits. Source: NIST SP 800-131A. OpenSSH for Windows has
// never generated shorter keys.
const minRSABits = 2048

// checkStrength rejects host keys that can be forged at an affordable cost.
func checkStrength(key ssh.PublicKey) error {
	public, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return nil
	}
	if number, ok := public.CryptoPublicKey().(*rsa.PublicKey); ok && number.N.BitLen() < minRSABits {
		return &HostKeyWeakError{Presented: hostKeyOf(key), Bits: number.N.BitLen()}
	}
	return nil
}
