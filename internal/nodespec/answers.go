package nodespec

// Answers are what the operator learns only after a spec was sent: they answer its needs. They are short and no secret, so they
// travel in a command line, while a spec travels as a file.
type Answers struct {
	// Certificate is the kubelet's signed client certificate in PEM; empty when none is to be installed.
	Certificate string
	// PodSubnet is what the cluster's network assigned to the node, in CIDR form; empty until it has.
	PodSubnet string
}

// Answers are those that the spec holds.
func (s NodeSpec) Answers() Answers {
	return Answers{Certificate: s.Identity.Certificate, PodSubnet: s.Network.PodSubnet}
}

// With is the spec with these answers in place of its own.
func (s NodeSpec) With(answers Answers) NodeSpec {
	s.Identity.Certificate, s.Network.PodSubnet = answers.Certificate, answers.PodSubnet
	return s
}
