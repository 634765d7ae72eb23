package nodespec

import (
	"slices"
	"strings"
)

// needCertificatePrefix starts the needs for certificates other than the kubelet's.
const needCertificatePrefix = "Certificate "

// NeedCertificateOf returns the signed certificate of the identity of that name; the name is empty for the kubelet's.
func NeedCertificateOf(identity string) Need {
	if identity == "" {
		return NeedCertificate
	}
	return Need(needCertificatePrefix + identity)
}

// CertificateOf returns the identity whose certificate is needed; ok is false for a need of anything else.
func CertificateOf(need Need) (identity string, ok bool) {
	if need == NeedCertificate {
		return "", true
	}
	return strings.CutPrefix(string(need), needCertificatePrefix)
}

// AllIdentities returns the identity of the kubelet and then those of other services.
func (s NodeSpec) AllIdentities() []Identity {
	if s.Identity.CommonName == "" {
		return s.Identities
	}
	return slices.Concat([]Identity{s.Identity}, s.Identities)
}

// Service returns the name of the service whose identity it is.
func (i Identity) Service() string {
	if i.Name == "" {
		return ServiceKubelet
	}
	return i.Name
}

// FileName returns the name of one of the identity's files in its directory, as client-go's certificate store names
// them.
func (i Identity) FileName(what string) string { return i.Service() + "-client-" + what + ".pem" }

// Path is the path of that file.
func (i Identity) Path(what string) string { return i.Directory + `\` + i.FileName(what) }

// CurrentCertificate is what FileName calls the link to the key and certificate in use.
const CurrentCertificate = "current"
