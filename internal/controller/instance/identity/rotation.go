package identity

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// RecordIssued records certificates that were issued and installed on the host, by the names of their
// identities.
func RecordIssued(status *v1alpha1.WindowsInstanceStatus, issued map[string]string, now time.Time) {
	for name, certificate := range issued {
		block, _ := pem.Decode([]byte(certificate))
		if block == nil {
			continue
		}
		if leaf, err := x509.ParseCertificate(block.Bytes); err == nil {
			recordRenewed(status, certificateStatus(name, leaf.NotBefore, leaf.NotAfter), now)
		}
	}
}

func recordRenewed(status *v1alpha1.WindowsInstanceStatus, renewed v1alpha1.CertificateStatus, now time.Time) {
	renewed.IssuedAt = ptr.To(metav1.NewTime(now).Rfc3339Copy())
	setCertificate(status, renewed)
}

func setCertificate(status *v1alpha1.WindowsInstanceStatus, noted v1alpha1.CertificateStatus) {
	status.Certificates = slices.DeleteFunc(slices.Clone(status.Certificates), func(c v1alpha1.CertificateStatus) bool {
		return c.Name == noted.Name
	})
	status.Certificates = append(status.Certificates, noted)
	slices.SortFunc(status.Certificates, func(a, b v1alpha1.CertificateStatus) int { return cmp.Compare(a.Name, b.Name) })
}

// reportedRenewalDelay is the minimum time between a renewal and the next renewal that is due only because of the
// host's report. Without this delay, a host could make the cluster sign a certificate at every inspection.
const reportedRenewalDelay = time.Hour

// RecordReported records the certificates for exactly the identities of a fully applied spec. The validity is
// reported by the host, and a false report affects only the certificates of that host. A missing certificate that is
// not essential for the node is renewed at once, unless a renewal was recent. The kubelet renews its own
// certificates.
func RecordReported(status *v1alpha1.WindowsInstanceStatus, spec nodespec.NodeSpec, facts *plan.Facts, now time.Time) {
	wanted := func(name string) bool {
		return slices.ContainsFunc(spec.Identities, func(identity nodespec.Identity) bool { return identity.Name == name })
	}
	status.Certificates = slices.DeleteFunc(slices.Clone(status.Certificates), func(c v1alpha1.CertificateStatus) bool {
		return !wanted(c.Name)
	})
	for _, identity := range spec.Identities {
		if facts == nil {
			continue
		}
		from, to := now, now
		if current := facts.IdentityOf(identity.Name).Current; current != nil {
			from, to = current.NotBefore, current.NotAfter
		}
		reported := certificateStatus(identity.Name, from, to)
		if i := slices.IndexFunc(status.Certificates, func(c v1alpha1.CertificateStatus) bool {
			return c.Name == identity.Name
		}); i >= 0 {
			reported = afterRenewal(status.Certificates[i], reported)
		}
		setCertificate(status, reported)
	}
	if len(status.Certificates) == 0 {
		status.Certificates = nil
	}
}

// afterRenewal returns the status of a certificate that the host reports after a renewal by the operator.
func afterRenewal(known, reported v1alpha1.CertificateStatus) v1alpha1.CertificateStatus {
	switch {
	case known.IssuedAt == nil:
		return reported
	case known.NotAfter.Equal(&reported.NotAfter):
		return known
	}
	reported.IssuedAt = known.IssuedAt
	if rest := known.IssuedAt.Add(reportedRenewalDelay); reported.RenewAt.Time.Before(rest) {
		reported.RenewAt = metav1.NewTime(rest)
	}
	return reported
}

// renewalFraction is the fraction of the lifetime after which a certificate is renewed. The kubelet renews its
// own certificates at 70 to 90 percent.
const renewalFraction = 0.75

// certificateStatus returns the status of a certificate with its renewal time.
func certificateStatus(name string, notBefore, notAfter time.Time) v1alpha1.CertificateStatus {
	renewAt := notBefore.Add(time.Duration(renewalFraction * float64(notAfter.Sub(notBefore))))
	return v1alpha1.CertificateStatus{
		// The API stores whole seconds.
		Name: name, NotAfter: metav1.NewTime(notAfter).Rfc3339Copy(), RenewAt: metav1.NewTime(renewAt).Rfc3339Copy(),
	}
}

// Due returns the names of the certificates that must be renewed now, and the time until the next check of
// the rest; zero if there are none. The checks are spread over a tenth of the certificate lifetime, because
// hosts that joined together would otherwise all be contacted at once.
func Due(certificates []v1alpha1.CertificateStatus, now time.Time, jitter float64) (due []string, next time.Duration) {
	for _, certificate := range certificates {
		rest := certificate.RenewAt.Sub(now)
		if rest <= 0 {
			due = append(due, certificate.Name)
			continue
		}
		margin := certificate.NotAfter.Sub(certificate.RenewAt.Time) // a quarter of the lifetime
		next = MinPositive(next, rest+time.Duration(0.4*jitter*float64(margin)))
	}
	return due, next
}

// MinPositive returns the shorter of two waits. Zero means no wait.
func MinPositive(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// NeededIdentities returns the identity names of the certificates that a plan needs. The name of the kubelet's identity
// is empty.
func NeededIdentities(p plan.Plan) []string {
	var names []string
	for _, need := range p.Needs {
		if name, ok := nodespec.CertificateOf(need); ok {
			names = append(names, name)
		}
	}
	return names
}
