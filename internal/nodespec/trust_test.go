package nodespec

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"
)

func TestTrustedCertificates(t *testing.T) {
	t.Run("each is known by the digest of what the store holds", func(t *testing.T) {
		in := testInputs()
		in.Cluster.TrustedCAs = []string{testCertificate, "# once more\n" + testCertificate + testCertificate}
		trusted := mustMake(t, in).TrustedCertificates
		if len(trusted) != 1 {
			t.Fatalf("got %d, want the one", len(trusted))
		}
		block, _ := pem.Decode([]byte(testCertificate))
		sum := sha256.Sum256(block.Bytes)
		if trusted[0].Fingerprint != hex.EncodeToString(sum[:]) || trusted[0].Subject != "CN=mirror-ca" ||
			string(trusted[0].DER) != string(block.Bytes) {
			t.Errorf("%+v", trusted[0])
		}
	})
	t.Run("a cluster that has none adds none", func(t *testing.T) {
		if trusted := mustMake(t, testInputs()).TrustedCertificates; len(trusted) != 0 {
			t.Errorf("%v", trusted)
		}
	})
	t.Run("a subject of any length and letters is one short line", func(t *testing.T) {
		if got := sanitizeSubject("CN=a\nb\x1b" + strings.Repeat("ü", 200)); len([]rune(got)) != 100 ||
			!strings.HasPrefix(got, "CN=a?b?ü") {
			t.Errorf("%q", got)
		}
	})
	for name, test := range map[string]struct{ text, want string }{
		"no PEM": {"CA", "not PEM"},
		"a private key": {"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
			"not a certificate"},
		"an invalid certificate":       {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "x509"},
		"a second one that is cut off": {testCertificate + testCertificate[:200], "incomplete"},
		"a second one without its text": {testCertificate + "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
			"x509"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			in := testInputs()
			in.Cluster.TrustedCAs = []string{test.text}
			if _, err := Make(in); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func FuzzTrustedCertificates(f *testing.F) {
	f.Add(testCertificate)
	f.Add("# a comment\n" + testCertificate + "tail")
	f.Add("-----BEGIN CERTIFICATE-----")
	f.Fuzz(func(t *testing.T, text string) {
		trusted, err := trustedCertificates([]string{text})
		if err != nil {
			return
		}
		if len(trusted) == 0 {
			t.Error("nothing is trusted, and no event says so")
		}
		for _, certificate := range trusted {
			if _, err := x509.ParseCertificate(certificate.DER); err != nil || len(certificate.Fingerprint) != 64 ||
				strings.ContainsAny(certificate.Subject, "\r\n\x00") {
				t.Errorf("%+v", certificate)
			}
		}
	})
}
