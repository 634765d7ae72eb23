package instance

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// noteIssued remembers certificates that were issued and that the host has taken, by the names of their identities.
func (s *scope) noteIssued(issued map[string]string) {
	for name, certificate := range issued {
		block, _ := pem.Decode([]byte(certificate))
		if block == nil {
			continue
		}
		if leaf, err := x509.ParseCertificate(block.Bytes); err == nil {
			s.noteCertificate(certificateStatus(name, leaf.NotBefore, leaf.NotAfter))
		}
	}
}

func (s *scope) noteCertificate(noted v1alpha1.CertificateStatus) {
	status := &s.instance.Status
	status.Certificates = slices.DeleteFunc(slices.Clone(status.Certificates), func(c v1alpha1.CertificateStatus) bool { return c.Name == noted.Name })
	status.Certificates = append(status.Certificates, noted)
	slices.SortFunc(status.Certificates, func(a, b v1alpha1.CertificateStatus) int { return cmp.Compare(a.Name, b.Name) })
}

// noteCertificates remembers the certificates of the identities of a spec that was applied to its end, and no others. The host tells how long
// they are good: it could lie about its own only. One that the node came to work without is to be renewed at once. The kubelet renews its own.
func (s *scope) noteCertificates(spec nodespec.NodeSpec) {
	status := &s.instance.Status
	wanted := func(name string) bool {
		return slices.ContainsFunc(spec.Identities, func(identity nodespec.Identity) bool { return identity.Name == name })
	}
	status.Certificates = slices.DeleteFunc(slices.Clone(status.Certificates), func(c v1alpha1.CertificateStatus) bool { return !wanted(c.Name) })
	for _, identity := range spec.Identities {
		if s.session.facts == nil {
			continue
		}
		from, to := s.Clock.Now(), s.Clock.Now()
		if current := s.session.facts.IdentityOf(identity.Name).Current; current != nil {
			from, to = current.NotBefore, current.NotAfter
		}
		s.noteCertificate(certificateStatus(identity.Name, from, to))
	}
	if len(status.Certificates) == 0 {
		status.Certificates = nil
	}
}

// renewalPart is the part of its life after which a certificate is renewed. The kubelet renews its own at 70 to 90 percent.
const renewalPart = 0.75

// certificateStatus says when a certificate is renewed.
func certificateStatus(name string, notBefore, notAfter time.Time) v1alpha1.CertificateStatus {
	renewAt := notBefore.Add(time.Duration(renewalPart * float64(notAfter.Sub(notBefore))))
	return v1alpha1.CertificateStatus{
		// The API keeps whole seconds.
		Name: name, NotAfter: metav1.NewTime(notAfter).Rfc3339Copy(), RenewAt: metav1.NewTime(renewAt).Rfc3339Copy(),
	}
}

// dueCertificates are the names of the certificates that are to be renewed now, and the time until the next look at the others; zero when there
// are none. Hosts that were joined together would all be connected to at once again, so the looks are spread over a tenth of a certificate's life.
func dueCertificates(certificates []v1alpha1.CertificateStatus, now time.Time, jitter float64) (due []string, next time.Duration) {
	for _, certificate := range certificates {
		rest := certificate.RenewAt.Sub(now)
		if rest <= 0 {
			due = append(due, certificate.Name)
			continue
		}
		margin := certificate.NotAfter.Sub(certificate.RenewAt.Time) // a quarter of its life
		next = sooner(next, rest+time.Duration(0.4*jitter*float64(margin)))
	}
	return due, next
}

// lookAgain brings the next look forward to when certificates are to be renewed.
func (s *scope) lookAgain(result ctrl.Result) ctrl.Result {
	if s.instance.Spec.DesiredState != v1alpha1.DesiredStateNode || s.instance.Spec.Paused {
		return result
	}
	now := s.Clock.Now()
	due, next := dueCertificates(s.instance.Status.Certificates, now, s.Jitter())
	if len(due) > 0 {
		switch retry := s.session.renewal.next.Sub(now); {
		case retry > 0:
			next = sooner(next, retry)
		case s.obstacle == nil || s.obstacle.outcome == nothingToDo:
			next = sooner(next, firstRetryDelay) // it became due on the way
		}
	}
	result.RequeueAfter = sooner(result.RequeueAfter, next)
	return result
}

// sooner is the shorter of two waits. Zero means no wait at all.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
