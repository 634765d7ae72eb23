package remote

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// legacyAlgorithms are what old SSH servers need and an administrator may allow: their weaknesses are known, and still
// cost an attacker on the way some work. What is broken outright (arcfour, ssh-dss, 3des-cbc,
// diffie-hellman-group1-sha1) cannot be allowed.
var legacyAlgorithms = []string{
	ssh.InsecureKeyExchangeDH14SHA1, ssh.InsecureKeyExchangeDHGEXSHA1, ssh.InsecureCipherAES128CBC, ssh.HMACSHA1,
	ssh.InsecureHMACSHA196, ssh.KeyAlgoRSA,
}

// ParseLegacyAlgorithms reads names of algorithms, separated by commas, for Dialer.LegacyAlgorithms.
func ParseLegacyAlgorithms(list string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "", slices.Contains(names, name):
			continue
		case !slices.Contains(legacyAlgorithms, name):
			return nil, fmt.Errorf("%q is not an SSH algorithm that can be allowed in addition to the modern ones: those are %s",
				name, strings.Join(legacyAlgorithms, ", "))
		}
		names = append(names, name)
	}
	return names, nil
}

// algorithms are what is offered to a server.
type algorithms struct {
	keyExchanges, ciphers, macs, hostKeys, signatures []string
}

// offeredAlgorithms are those without known weaknesses, then those of legacy that may be allowed. The host-key
// algorithms of the pinned key come first: a server with several keys must present the one that was seen before. In
// FIPS mode the SSH library leaves out what is not approved.
func offeredAlgorithms(legacy []string, pinned *HostKey) algorithms {
	modern, insecure := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	allowed := func(known []string) []string {
		return slices.DeleteFunc(slices.Clone(known), func(name string) bool { return !isAllowed(legacy, name) })
	}
	macs := slices.DeleteFunc(modern.MACs, func(name string) bool {
		return name == ssh.HMACSHA1 && !isAllowed(legacy, name)
	})
	hostKeys := append([]string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA512,
		ssh.KeyAlgoRSASHA256,
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

func isAllowed(legacy []string, name string) bool {
	return slices.Contains(legacy, name) && slices.Contains(legacyAlgorithms, name)
}

func rank(first []string, name string) int {
	if slices.Contains(first, name) {
		return 0
	}
	return 1
}

// algorithmsOfKey returns the signature algorithms for a type of key.
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

// allowHint says how an administrator lets the operator speak with a server that has nothing better; empty when nothing
// that the server offers may be allowed.
func allowHint(offered []string) string {
	var names []string
	for _, name := range offered {
		if slices.Contains(legacyAlgorithms, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; until then, the operator's flag --ssh-legacy-algorithms or its environment variable SSH_LEGACY_ALGORITHMS can allow " + strings.Join(names, ", ")
}
