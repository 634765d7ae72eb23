package instance

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"slices"
	"strings"
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
			s.noteCertificate(certificateStatus(s.instance.Name, name, leaf.NotBefore, leaf.NotAfter))
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
		s.noteCertificate(certificateStatus(s.instance.Name, identity.Name, from, to))
	}
	if len(status.Certificates) == 0 {
		status.Certificates = nil
	}
}

// A certificate is renewed when this part of its life has passed: the kubelet renews its own at 70 to 90 percent. Hosts that were joined
// together would all be connected to at once again, so each has its own time between the two.
const (
	earliestRenewal = 0.70
	latestRenewal   = 0.85
)

// certificateStatus says when a certificate is renewed. It is always the same for a certificate of an instance, also to the next operator.
func certificateStatus(instance, name string, notBefore, notAfter time.Time) v1alpha1.CertificateStatus {
	part := earliestRenewal + (latestRenewal-earliestRenewal)*share(instance, name)
	renewAt := notBefore.Add(time.Duration(part * float64(notAfter.Sub(notBefore))))
	return v1alpha1.CertificateStatus{
		// The API keeps whole seconds.
		Name: name, NotAfter: metav1.NewTime(notAfter).Rfc3339Copy(), RenewAt: metav1.NewTime(renewAt).Rfc3339Copy(),
	}
}

// share is a number in [0,1) that follows from the names and is spread evenly over instances.
func share(names ...string) float64 {
	sum := sha256.Sum256([]byte(strings.Join(names, "/")))
	return float64(binary.BigEndian.Uint32(sum[:4])) / (1 << 32)
}

const (
	// punctual is how late a renewal may be that the operator did not miss.
	punctual = 5 * time.Minute
	// catchUp is the time over which those renewals are spread that an operator finds to have been due while there was none.
	catchUp = 10 * time.Minute
)

// catchUpDelay is how long an operator that has just begun to look at an instance waits with certificates that were due long before: it may
// find a thousand instances of which that is true. It waits no longer than half of what is left of their lives.
func catchUpDelay(instance string, certificates []v1alpha1.CertificateStatus, now time.Time) time.Duration {
	window := time.Duration(0)
	for _, certificate := range certificates {
		if now.Sub(certificate.RenewAt.Time) <= punctual {
			continue
		}
		rest := min(catchUp, certificate.NotAfter.Sub(now)/2)
		if rest <= 0 {
			return 0
		}
		if window == 0 || rest < window {
			window = rest
		}
	}
	return time.Duration(share(instance, "catch up") * float64(window))
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

// longestSleep is how long an instance with certificates is not looked at: a wait does not become shorter when the clock is set forward, or
// when the machine that the operator runs on slept through it. To look costs no connection.
const longestSleep = time.Hour

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
	if next > 0 {
		next = min(next, longestSleep)
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
