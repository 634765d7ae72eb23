package remote

import (
	"bytes"
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

// Equal tells whether both are the same key.
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

// algorithms are what is offered to a server.
type algorithms struct {
	keyExchanges, ciphers, macs, hostKeys, signatures []string
}

// offeredAlgorithms are those without known weaknesses, then those of legacy that the SSH library knows. The host-key algorithms
// of the pinned key come first: a server with several keys must present the one that was seen before.
func offeredAlgorithms(legacy []string, pinned *HostKey) algorithms {
	modern, insecure := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	allowed := func(known []string) []string {
		return slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !slices.Contains(legacy, name) })
	}
	macs := slices.DeleteFunc(modern.MACs, func(name string) bool {
		return name == ssh.HMACSHA1 && !slices.Contains(legacy, name)
	})
	hostKeys := append([]string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
	}, allowed([]string{ssh.KeyAlgoRSA})...)
	if pinned != nil {
		first := algorithmsOfKey(pinned.Type)
		slices.SortStableFunc(hostKeys, func(a, b string) int {
			return rank(first, a) - rank(first, b)
		})
	}
	return algorithms{
		keyExchanges: append(modern.KeyExchanges, allowed(insecure.KeyExchanges)...),
		ciphers:      append(modern.Ciphers, allowed(insecure.Ciphers)...),
		macs:         append(macs, allowed(insecure.MACs)...),
		hostKeys:     hostKeys,
		signatures:   append([]string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}, allowed([]string{ssh.KeyAlgoRSA})...),
	}
}

func rank(first []string, name string) int {
	if slices.Contains(first, name) {
		return 0
	}
	return 1
}

// algorithmsOfKey are the signature algorithms for a type of key.
func algorithmsOfKey(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{keyType}
}

// loginSigner limits an RSA key to the signature algorithms that are offered.
func (a algorithms) loginSigner(signer ssh.Signer) (ssh.Signer, error) {
	rsaSigner, ok := signer.(ssh.AlgorithmSigner)
	if !ok || signer.PublicKey().Type() != ssh.KeyAlgoRSA {
		return signer, nil
	}
	return ssh.NewSignerWithAlgorithms(rsaSigner, a.signatures)
}
