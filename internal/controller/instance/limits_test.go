package instance

import (
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// The limits and names that administrators know, repeated on purpose, because a change of a value is a change of
// behavior.
const (
	bootIDTimeout         = 2 * time.Minute
	rebootTimeout         = 15 * time.Minute
	maxRebootPollInterval = 2 * time.Second
	readyTimeout          = 2 * time.Minute
	readyPollInterval     = 2 * time.Second
	lateNodeTimeout       = 10 * time.Second
	hostRecheckInterval   = 10 * time.Minute
	progressInterval      = 5 * time.Second
	maxMessageLength      = 2048
	maxChangeAttempts     = 3
	hostKeysConfigMap     = "windows-ssh-host-keys"
	labelInstance         = "windowsmachineconfig.openshift.io/instance"
)

// certificateStatus returns the status of a certificate with the given validity.
func certificateStatus(name string, from, to time.Time) v1alpha1.CertificateStatus {
	return v1alpha1.CertificateStatus{
		Name: name, NotAfter: metav1.NewTime(to).Rfc3339Copy(),
		RenewAt: metav1.NewTime(from.Add(to.Sub(from) * 3 / 4)).Rfc3339Copy(),
	}
}

func isApproved(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
}
