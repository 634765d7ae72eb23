package operator

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

// writePair writes a certificate for a name, and its key, as a mounted Secret has them.
func writePair(t *testing.T, directory, name string, modified time.Time) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		path := filepath.Join(directory, file)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheCertificateOfTheMetricsServer(t *testing.T) {
	directory, now := t.TempDir(), time.Now()
	s := &servingCertificate{directory: directory, selfSigned: sync.OnceValues(selfSigned)}
	expect := func(t *testing.T, name string) {
		t.Helper()
		got, err := s.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	t.Run("is self-signed until there is one, and stays the same", func(t *testing.T) {
		expect(t, "localhost")
		first, _ := s.get(nil)
		if again, _ := s.get(nil); again != first {
			t.Error("it is made anew for each connection")
		}
	})
	t.Run("is the service CA's once it has come", func(t *testing.T) {
		writePair(t, directory, "first.example.com", now)
		expect(t, "first.example.com")
	})
	t.Run("follows its rotation", func(t *testing.T) {
		writePair(t, directory, "second.example.com", now.Add(time.Minute))
		expect(t, "second.example.com")
	})
	t.Run("is the one before while the files are no pair", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(directory, "tls.key"), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(directory, "tls.crt"), now, now.Add(2*time.Minute)); err != nil {
			t.Fatal(err)
		}
		expect(t, "second.example.com")
	})
	t.Run("is the one before when the files are taken away", func(t *testing.T) {
		if err := os.Remove(filepath.Join(directory, "tls.crt")); err != nil {
			t.Fatal(err)
		}
		expect(t, "second.example.com")
	})
	t.Run("is an error that names the folder when the first one cannot be read", func(t *testing.T) {
		broken := t.TempDir()
		if err := os.WriteFile(filepath.Join(broken, "tls.crt"), []byte("none"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := (&servingCertificate{directory: broken, selfSigned: selfSigned}).get(nil); err == nil {
			t.Errorf("got %v", got)
		}
	})
	t.Run("is self-signed without a folder", func(t *testing.T) {
		got, err := (&servingCertificate{selfSigned: selfSigned}).get(nil)
		if err != nil || got.Leaf.VerifyHostname("localhost") != nil {
			t.Errorf("got %v, error %v", got, err)
		}
	})
}

func TestMetricsAreServedWithTLSOnly(t *testing.T) {
	options := Config{MetricsAddress: ":8443"}.metricsOptions()
	if !options.SecureServing || options.FilterProvider == nil {
		t.Errorf("they are served as %+v", options)
	}
	var config tls.Config
	for _, set := range options.TLSOpts {
		set(&config)
	}
	if config.MinVersion < tls.VersionTLS12 || config.GetCertificate == nil {
		t.Errorf("TLS version %x, a certificate: %t", config.MinVersion, config.GetCertificate != nil)
	}
}
