// Package windowsexporter proves that what the operator writes for windows_exporter is what the exporter of this
// version takes it for. The files are the golden ones of internal/nodespec.
package windowsexporter

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
)

func TestWebConfig_AcceptedByExporter(t *testing.T) {
	paths, err := filepath.Glob("../../internal/nodespec/testdata/*/tls/windows-exporter-webconfig.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files; %v", err)
	}
	certificate, key := servingCertificate(t)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Paths of Windows are relative ones elsewhere, and a file may have such a name there.
		folder := t.TempDir()
		for name, content := range map[string][]byte{"web.yaml": data, `C:\k\tls\certs\tls.crt`: certificate,
			`C:\k\tls\certs\tls.key`: key, `C:\k\tls\certs\client-ca.crt`: certificate} {
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := web.Validate(filepath.Join(folder, "web.yaml")); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func servingCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"windows-exporter"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
