package plan

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// The authorities that the whole machine trusts. Programs that run see a change of Windows' store of roots: none is
// restarted for one.

func (m *maker) trustCertificates() {
	for _, certificate := range m.spec.TrustedCertificates {
		if !m.facts.trusts(certificate.Fingerprint) {
			m.add(TrustCertificate{Certificate: certificate}, "the host does not trust the certificate authority")
		}
	}
}

// trustedCertificate takes an authority out of the store, unless it was there before us.
func (r *restorer) trustedCertificate(fingerprint string) {
	if !r.facts.Ledger.TrustedCertificates[fingerprint] && r.facts.trusts(fingerprint) {
		r.add(DistrustCertificate{Fingerprint: fingerprint}, false)
	}
}

// WithForeignCertificate records that others also make the machine trust an authority: it stays when we no longer need
// it, like one that existed before us.
func (l Ledger) WithForeignCertificate(fingerprint string) Ledger {
	l.TrustedCertificates = maps.Clone(l.TrustedCertificates)
	if l.TrustedCertificates == nil {
		l.TrustedCertificates = map[string]bool{}
	}
	l.TrustedCertificates[fingerprint] = true
	return l
}

func (f Facts) trusts(fingerprint string) bool {
	return containsFold(f.TrustedCertificates, fingerprint)
}

// rememberCertificates adds those of the spec, and those that an older operator has put into the store: they are as if
// not there before.
func rememberCertificates(facts Facts, spec nodespec.NodeSpec, left leftovers) map[string]bool {
	var names []string
	for _, certificate := range spec.TrustedCertificates {
		names = append(names, certificate.Fingerprint)
	}
	var imported []string
	if left.there {
		imported = facts.ImportedCertificates
	}
	return remember(facts.Ledger.TrustedCertificates, slices.Concat(names, imported), func(fingerprint string) bool {
		return facts.trusts(fingerprint) && !containsFold(imported, fingerprint)
	})
}

// NamedCertificates returns the fingerprints that concern us, those that an older operator has imported among them.
func NamedCertificates(ledger Ledger, spec nodespec.NodeSpec, imported []string) []string {
	names := slices.Concat(imported, slices.Collect(maps.Keys(ledger.TrustedCertificates)))
	for _, certificate := range spec.TrustedCertificates {
		names = append(names, certificate.Fingerprint)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Limits of what a step's name says of an authority.
const (
	maxSubject       = 100
	shortFingerprint = 12
)

// authority names a certificate for people: by its subject, and by a part of the fingerprint, because an authority that
// renews its certificate has two of one subject.
func authority(fingerprint, subject string) string {
	short := fingerprint[:min(shortFingerprint, len(fingerprint))]
	printable := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, subject)
	if runes := []rune(printable); len(runes) > maxSubject {
		printable = string(runes[:maxSubject]) + "..."
	}
	if printable == "" {
		return short
	}
	return printable + " (" + short + ")"
}
