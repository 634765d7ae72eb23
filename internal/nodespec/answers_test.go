package nodespec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnswersAreAllThatChangesOnceASpecWasSent(t *testing.T) {
	before, known := testInputs(), testInputs()
	before.PodSubnet, known.PodSubnet = "", "10.132.7.0/24"
	spec, after := mustMake(t, before), mustMake(t, known)
	answers := Answers{Certificate: "a certificate", PodSubnet: "10.132.7.0/24"}
	got := spec.With(answers)
	if diff := cmp.Diff(answers, got.Answers()); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if got.Digest() != after.Digest() {
		t.Errorf("the answered spec is not the one that is made when the answers are known:\n%s", cmp.Diff(after, got))
	}
	if got.With(spec.Answers()).Digest() != spec.Digest() {
		t.Error("an answer cannot be taken back")
	}
}

func TestCertificatesOfFurtherIdentitiesAreAnswersToo(t *testing.T) {
	spec := NodeSpec{Identities: []Identity{{Name: "a", CommonName: "system:a:node"}, {Name: "b", CommonName: "system:b:node"}}}
	var answers Answers
	answers.SetCertificate("", "the kubelet's")
	answers.SetCertificate("b", "that of b")
	got := spec.With(answers)
	if diff := cmp.Diff(answers, got.Answers()); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if got.Identities[0].Certificate != "" || got.Identities[1].Certificate != "that of b" || got.Identity.Certificate != "the kubelet's" {
		t.Errorf("%+v", got)
	}
	if spec.Identities[1].Certificate != "" {
		t.Error("the spec that was given is another now")
	}
	if got.Digest() != spec.Digest() {
		t.Error("a certificate changes what the host is to be")
	}
	if !answers.HasCertificate() || answers.Empty() || !(Answers{}).Empty() || (Answers{PodSubnet: "10.0.0.0/24"}).HasCertificate() {
		t.Error("it is not known what an answer holds")
	}
	if back := got.With(spec.Answers()); back.Identities[1].Certificate != "" {
		t.Error("an answer cannot be taken back")
	}
}

func TestNeedsOfCertificatesNameTheirIdentity(t *testing.T) {
	for _, name := range []string{"", "cloud-node-manager"} {
		if got, ok := CertificateOf(NeedCertificateOf(name)); !ok || got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
	for _, need := range []Need{NeedPodSubnet, NeedSourceVIP, NeedHNSNetwork} {
		if name, ok := CertificateOf(need); ok {
			t.Errorf("%s is taken for the certificate of %q", need, name)
		}
	}
	if got := (Identity{Name: "cloud-node-manager", Directory: `C:\k\pki`}).Path(CurrentCertificate); got != `C:\k\pki\cloud-node-manager-client-current.pem` {
		t.Error(got)
	}
	if got := (Identity{Directory: `C:\k\pki`}).Path(CurrentCertificate); got != `C:\k\pki\kubelet-client-current.pem` {
		t.Error(got)
	}
}
