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

// noteIssued remembers certificates that were issued and that the host has taken.
func (s *scope) noteIssued(issued nodespec.Answers) {
	for name, certificate := range issued.Certificates {
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
// they are good: it could lie about its own only. The kubelet renews its own.
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
		if current := s.session.facts.IdentityOf(identity.Name).Current; current != nil {
			s.noteCertificate(certificateStatus(identity.Name, current.NotBefore, current.NotAfter))
		}
	}
	if len(status.Certificates) == 0 {
		status.Certificates = nil
	}
}

// certificateStatus says when a certificate is renewed: when four fifths of its life have passed, as the kubelet renews its own at 70 to
// 90 percent.
func certificateStatus(name string, notBefore, notAfter time.Time) v1alpha1.CertificateStatus {
	life := notAfter.Sub(notBefore)
	return v1alpha1.CertificateStatus{
		// The API keeps whole seconds.
		Name: name, NotAfter: metav1.NewTime(notAfter).Rfc3339Copy(), RenewAt: metav1.NewTime(notBefore.Add(life / 5 * 4)).Rfc3339Copy(),
	}
}

// dueCertificates are the names of the certificates that are to be renewed now, and the time until the next of the others is; zero when
// there is none.
func dueCertificates(certificates []v1alpha1.CertificateStatus, now time.Time) (due []string, next time.Duration) {
	for _, certificate := range certificates {
		rest := certificate.RenewAt.Sub(now)
		switch {
		case rest <= 0:
			due = append(due, certificate.Name)
		case next == 0 || rest < next:
			next = rest
		}
	}
	return due, next
}

// lookAgain brings the next look forward to when certificates are to be renewed.
func (s *scope) lookAgain(result ctrl.Result) ctrl.Result {
	if s.instance.Spec.DesiredState != v1alpha1.DesiredStateNode || s.instance.Spec.Paused {
		return result
	}
	now := s.Clock.Now()
	due, next := dueCertificates(s.instance.Status.Certificates, now)
	if len(due) > 0 {
		switch retry := s.session.renewal.next.Sub(now); {
		case retry > 0:
			next = sooner(next, retry)
		case s.obstacle == nil || s.obstacle.done:
			next = sooner(next, firstRetryDelay) // it became due on the way
		}
	}
	result.RequeueAfter = sooner(result.RequeueAfter, next)
	return result
}

// sooner is the shorter of two waits, of which zero is for ever.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
