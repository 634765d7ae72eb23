package standin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"

	"github.com/windows-machine-config/wmco/internal/host"
)

// servingPair returns a self-signed certificate for a name, and the key.
func servingPair(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(encoded)
}

//
func TestExporter_ServesCertificateOnDrive(t *testing.T) {
	h := newHost(t, "win", Options{})
	rule := host.FirewallRule{Name: "exporter", DisplayName: "exporter", Protocol: "TCP", LocalPort: 9182,
		Enabled: true, Allow: true}
	if err := h.Host().Firewall.SetRule(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		certificate, key := servingPair(t, name)
		h.write(`C:\k\tls.crt`, certificate)
		h.write(`C:\k\tls.key`, key)
	}
	serves := func(name string) {
		t.Helper()
		err := h.pollUntil(func(ctx context.Context) (bool, error) {
			dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // Only the subject of the certificate matters.
			conn, err := dialer.DialContext(ctx, "tcp", h.portAddress(9182))
			if err != nil {
				return false, nil
			}
			defer conn.Close()
			secure, ok := conn.(*tls.Conn)
			return ok && secure.ConnectionState().PeerCertificates[0].Subject.CommonName == name, nil
		})
		if err != nil {
			t.Fatalf("the certificate of %s: %v", name, err)
		}
	}
	h.write(`C:\k\web.yaml`, "tls_server_config:\n  cert_file: tls.crt\n  key_file: 'C:\\k\\tls.key'\n")
	h.configureService("windows_exporter", `C:\k\windows_exporter.exe`, `--web.config.file=C:\k\web.yaml`)
	if err := h.Host().Services.Start(t.Context(), "windows_exporter"); err == nil && h.isServiceRunning("windows_exporter") {
		h.awaitMachine("it ends without a certificate", func() bool { return !h.isServiceRunning("windows_exporter") })
	}
	write("first")
	h.start("windows_exporter")
	serves("first")
	write("second")
	serves("second")
	for address, want := range map[string]int{"https://127.0.0.1:9182/metrics": http.StatusOK,
		"http://127.0.0.1:9182/metrics": http.StatusBadRequest} {
		if status, _, err := h.Host().Probes.HTTPGet(t.Context(), address, nil); status != want || err != nil {
			t.Errorf("%s: status %d, error %v", address, status, err)
		}
	}
	h.requireCertificates(t)
}

// requireCertificates changes the configuration of the running exporter to require client certificates.
func (h *testHost) requireCertificates(t *testing.T) {
	t.Helper()
	certificate, key := servingPair(t, "client")
	h.write(`C:\k\ca.crt`, certificate)
	h.write(`C:\k\web.yaml`, "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"+
		"  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n")
	other, otherKey := servingPair(t, "another")
	for name, c := range map[string]struct {
		client string
		want   int
	}{
		"the client's": {certificate + key, http.StatusOK}, "another's": {other + otherKey, http.StatusForbidden}, "none": {"", http.StatusForbidden},
	} {
		var shown []byte
		config := &tls.Config{InsecureSkipVerify: true} // Only the result of client authentication matters.
		if c.client != "" {
			shown = []byte(c.client)
			pair, err := tls.X509KeyPair(shown, shown)
			if err != nil {
				t.Fatal(err)
			}
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		if status, _, err := h.Host().Probes.HTTPGet(t.Context(), "https://127.0.0.1:9182/metrics", shown); status != c.want || err != nil {
			t.Errorf("on the host, with %s: status %d, error %v", name, status, err)
		}
		client := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		response, err := client.Get("https://" + h.portAddress(9182) + "/metrics")
		if (err == nil) != (c.want == http.StatusOK) {
			t.Errorf("over the network, with %s: error %v", name, err)
		}
		if err == nil {
			_ = response.Body.Close()
		}
	}
}
