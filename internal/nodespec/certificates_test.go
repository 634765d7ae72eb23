package nodespec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithCertificate(t *testing.T) {
	spec := NodeSpec{Identities: []Identity{{Name: "a"}, {Name: "b"}}}
	kubelet, other := spec.WithCertificate("", "signed"), spec.WithCertificate("b", "signed")
	if spec.HasCertificate() {
		t.Errorf("the spec given is changed: %+v", spec)
	}
	if kubelet.Identity.Certificate != "signed" || !kubelet.HasCertificate() {
		t.Errorf("the kubelet's certificate is not in %+v", kubelet)
	}
	if diff := cmp.Diff([]Identity{{Name: "a"}, {Name: "b", Certificate: "signed"}}, other.Identities); diff != "" ||
		!other.HasCertificate() {
		t.Errorf("the identities (-want +got):\n%s", diff)
	}
	for name, none := range map[string]NodeSpec{
		"a certificate that is taken out again": other.WithCertificate("b", ""),
		"the certificate of an unknown name":    spec.WithCertificate("c", "signed"),
	} {
		if diff := cmp.Diff(spec, none); diff != "" || none.HasCertificate() {
			t.Errorf("%s leaves (-want +got):\n%s", name, diff)
		}
	}
}
