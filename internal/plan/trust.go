package plan

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Authorities that the machine trusts. Running programs detect changes of the Windows root store, so no program is
// restarted.

func (m *planner) trustCertificates() {
	for _, certificate := range m.spec.TrustedCertificates {
		if !m.facts.isTrusted(certificate.Fingerprint) {
			m.addOperation(TrustCertificate{Certificate: certificate}, "the host does not trust the certificate authority")
		}
	}
}

// restoreTrustedCertificate removes an authority from the store, unless the authority was trusted originally.
func (r *restorePlanner) restoreTrustedCertificate(fingerprint string) {
	if !r.facts.Ledger.TrustedCertificates[fingerprint] && r.facts.isTrusted(fingerprint) {
		r.addStep(DistrustCertificate{Fingerprint: fingerprint}, false)
	}
}

// WithForeignCertificate records that another program also makes the machine trust an authority. Like an original
// entry, the authority remains when the node no longer needs it.
func (l Ledger) WithForeignCertificate(fingerprint string) Ledger {
	l.TrustedCertificates = maps.Clone(l.TrustedCertificates)
	if l.TrustedCertificates == nil {
		l.TrustedCertificates = map[string]bool{}
	}
	l.TrustedCertificates[fingerprint] = true
	return l
}

func (f Facts) isTrusted(fingerprint string) bool {
	return containsFold(f.TrustedCertificates, fingerprint)
}

// addCertificates adds the certificates of the spec, and the certificates that a legacy operator imported.
// Imported certificates are recorded as missing originally.
func addCertificates(facts Facts, spec nodespec.NodeSpec, left leftovers) map[string]bool {
	var names []string
	for _, certificate := range spec.TrustedCertificates {
		names = append(names, certificate.Fingerprint)
	}
	var imported []string
	if left.found {
		imported = facts.ImportedCertificates
	}
	return addMissing(facts.Ledger.TrustedCertificates, slices.Concat(names, imported), func(fingerprint string) bool {
		return facts.isTrusted(fingerprint) && !containsFold(imported, fingerprint)
	})
}

// NamedCertificates returns the fingerprints in the spec or the ledger, and the fingerprints that a legacy operator
// imported.
func NamedCertificates(ledger Ledger, spec nodespec.NodeSpec, imported []string) []string {
	names := slices.Concat(imported, slices.Collect(maps.Keys(ledger.TrustedCertificates)))
	for _, certificate := range spec.TrustedCertificates {
		names = append(names, certificate.Fingerprint)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Limits for the description of an authority in step names.
const (
	maxSubject       = 100
	shortFingerprint = 12
)

// describeAuthority describes a certificate by its subject and a part of the fingerprint, because renewed certificates
// of an authority have the same subject.
func describeAuthority(fingerprint, subject string) string {
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
