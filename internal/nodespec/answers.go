package nodespec

import (
	"maps"
	"slices"
)

// Answers are what the operator learns only after a spec was sent: they answer its needs. They are short and no secret, so they
// travel in a command line, while a spec travels as a file.
type Answers struct {
	// Certificate is the kubelet's signed client certificate in PEM; empty when none is to be installed.
	Certificate string
	// Certificates are those of the spec's further identities, by the identity's name; one that is not to be installed is left out.
	Certificates map[string]string
	// PodSubnet is what the cluster's network assigned to the node, in CIDR form; empty until it has.
	PodSubnet string
}

// Empty tells whether there is no answer.
func (a Answers) Empty() bool {
	return a.Certificate == "" && len(a.Certificates) == 0 && a.PodSubnet == ""
}

// HasCertificate tells whether the certificate of any identity is among the answers.
func (a Answers) HasCertificate() bool { return a.Certificate != "" || len(a.Certificates) > 0 }

// SetCertificate answers the need for the certificate of an identity; the name is empty for the kubelet's.
func (a *Answers) SetCertificate(identity, certificate string) {
	if identity == "" {
		a.Certificate = certificate
		return
	}
	a.Certificates = maps.Clone(a.Certificates)
	if a.Certificates == nil {
		a.Certificates = map[string]string{}
	}
	a.Certificates[identity] = certificate
}

// Answers are those that the spec holds.
func (s NodeSpec) Answers() Answers {
	answers := Answers{Certificate: s.Identity.Certificate, PodSubnet: s.Network.PodSubnet}
	for _, identity := range s.Identities {
		if identity.Certificate != "" {
			answers.SetCertificate(identity.Name, identity.Certificate)
		}
	}
	return answers
}

// With is the spec with these answers in place of its own. The spec given is left as it is.
func (s NodeSpec) With(answers Answers) NodeSpec {
	s.Identity.Certificate, s.Network.PodSubnet = answers.Certificate, answers.PodSubnet
	s.Identities = slices.Clone(s.Identities)
	for i := range s.Identities {
		s.Identities[i].Certificate = answers.Certificates[s.Identities[i].Name]
	}
	return s
}
