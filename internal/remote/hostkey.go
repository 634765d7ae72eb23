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
	// Type is the SSH name of the key's type: "ssh-ed25519".
	Type string
	// Data is the key in SSH wire form, as it stands base64-encoded in a known_hosts line.
	Data []byte
}

// Fingerprint is "SHA256:…", as ssh-keygen -l prints it.
func (k HostKey) Fingerprint() string {
	sum := sha256.Sum256(k.Data)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// Equal reports whether both are the same key.
func (k HostKey) Equal(other HostKey) bool {
	return k.Type == other.Type && bytes.Equal(k.Data, other.Data)
}

func hostKeyOf(key ssh.PublicKey) HostKey {
	return HostKey{Type: key.Type(), Data: key.Marshal()}
}

// checkHostKey compares what a host presents with what is pinned; nil pins nothing.
func checkHostKey(pinned *HostKey, presented HostKey) error {
	if pinned == nil || pinned.Equal(presented) {
		return nil
	}
	return &HostKeyChangedError{Pinned: *pinned, Presented: presented}
}

// checkExpected compares what a host presents at the first contact with the fingerprints that were announced; none
// announce nothing.
func checkExpected(expected []string, presented HostKey) error {
	if len(expected) == 0 || slices.Contains(expected, presented.Fingerprint()) {
		return nil
	}
	return &HostKeyUnexpectedError{Expected: expected, Presented: presented}
}

// admits reports whether a target may be the host that presents this key.
func (t Target) admits(presented HostKey) error {
	if t.HostKey != nil {
		return checkHostKey(t.HostKey, presented)
	}
	return checkExpected(t.Expected, presented)
}

// shortestRSA is the length from which an RSA host key is believed, in bits. Source: NIST SP 800-131A. OpenSSH for
// Windows has never made shorter ones.
const shortestRSA = 2048

// checkStrength refuses host keys that can be forged with enough money.
func checkStrength(key ssh.PublicKey) error {
	public, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return nil
	}
	if number, ok := public.CryptoPublicKey().(*rsa.PublicKey); ok && number.N.BitLen() < shortestRSA {
		return &HostKeyWeakError{Presented: hostKeyOf(key), Bits: number.N.BitLen()}
	}
	return nil
}
