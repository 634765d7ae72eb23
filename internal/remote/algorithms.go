package remote

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// legacyAlgorithms are the SSH algorithms that an administrator may allow for old servers. Their weaknesses are known
// but still require effort from an on-path attacker. Broken algorithms (arcfour, ssh-dss, 3des-cbc,
// diffie-hellman-group1-sha1) cannot be allowed.
var legacyAlgorithms = []string{
	ssh.InsecureKeyExchangeDH14SHA1, ssh.InsecureKeyExchangeDHGEXSHA1, ssh.InsecureCipherAES128CBC, ssh.HMACSHA1,
	ssh.InsecureHMACSHA196, ssh.KeyAlgoRSA,
}

// ParseLegacyAlgorithms parses comma-separated names of algorithms for Dialer.LegacyAlgorithms.
func ParseLegacyAlgorithms(list string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "", slices.Contains(names, name):
			continue
		case !slices.Contains(legacyAlgorithms, name):
			return nil, fmt.Errorf("SSH algorithm %q cannot be allowed in addition to the modern algorithms; the allowed names are %s",
				name, strings.Join(legacyAlgorithms, ", "))
		}
		names = append(names, name)
	}
	return names, nil
}

// algorithms are the SSH algorithms offered to a server.
type algorithms struct {
	keyExchanges, ciphers, macs, hostKeys, signatures []string
}

// offeredAlgorithms returns the algorithms without known weaknesses, followed by the allowed legacy algorithms.
// Host-key algorithms for the pinned key come first: a server with several keys must present the pinned one. In FIPS
// mode the SSH library omits algorithms that are not approved.
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
			return algorithmRank(first, a) - algorithmRank(first, b)
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

func algorithmRank(first []string, name string) int {
	if slices.Contains(first, name) {
		return 0
	}
	return 1
}

func algorithmsOfKey(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{keyType}
}

// loginSigner restricts an RSA key to the offered signature algorithms.
func (a algorithms) loginSigner(signer ssh.Signer) (ssh.Signer, error) {
	rsaSigner, ok := signer.(ssh.AlgorithmSigner)
	if !ok || signer.PublicKey().Type() != ssh.KeyAlgoRSA {
		return signer, nil
	}
	return ssh.NewSignerWithAlgorithms(rsaSigner, a.signatures)
}

// allowHint describes how an administrator can allow the algorithms of a server that offers only legacy algorithms.
// It returns an empty string if none of the offered algorithms may be allowed.
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
