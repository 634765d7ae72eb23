package nodespec

import "slices"

// WithCertificate returns a copy of the spec with the signed certificate, in PEM, of the named identity. The name
// of the kubelet's identity is empty. An empty certificate is not installed.
func (s NodeSpec) WithCertificate(identity, certificate string) NodeSpec {
	if identity == "" {
		s.Identity.Certificate = certificate
		return s
	}
	s.Identities = slices.Clone(s.Identities)
	for i := range s.Identities {
		if s.Identities[i].Name == identity {
			s.Identities[i].Certificate = certificate
		}
	}
	return s
}

// HasCertificate reports whether the spec contains the certificate of any identity.
func (s NodeSpec) HasCertificate() bool {
	return s.Identity.Certificate != "" || slices.ContainsFunc(s.Identities, func(identity Identity) bool {
		return identity.Certificate != ""
	})
}
