package nodespec

import (
	"slices"
	"strings"
)

// needCertificatePrefix is the prefix of needs for certificates other than the kubelet's.
const needCertificatePrefix = "Certificate "

// NeedCertificateOf returns the need for the signed certificate of the named identity; the name is empty for the
// kubelet.
func NeedCertificateOf(identity string) Need {
	if identity == "" {
		return NeedCertificate
	}
	return Need(needCertificatePrefix + identity)
}

// CertificateOf returns the identity with the needed certificate; ok is false for other needs.
func CertificateOf(need Need) (identity string, ok bool) {
	if need == NeedCertificate {
		return "", true
	}
	return strings.CutPrefix(string(need), needCertificatePrefix)
}

// AllIdentities returns the identity of the kubelet and then the identities of other services.
func (s NodeSpec) AllIdentities() []Identity {
	if s.Identity.CommonName == "" {
		return s.Identities
	}
	return slices.Concat([]Identity{s.Identity}, s.Identities)
}

// Service returns the name of the service with this identity.
func (i Identity) Service() string {
	if i.Name == "" {
		return ServiceKubelet
	}
	return i.Name
}

// FileName returns the name of one of the identity's files, following the naming of client-go's certificate store.
func (i Identity) FileName(what string) string { return i.Service() + "-client-" + what + ".pem" }

// Path returns the path of the file that FileName names.
func (i Identity) Path(what string) string { return i.Directory + `\` + i.FileName(what) }

// CurrentCertificate is FileName's argument for the link to the current key and certificate.
const CurrentCertificate = "current"
