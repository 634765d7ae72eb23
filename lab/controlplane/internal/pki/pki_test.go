package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
)

func TestAuthorities(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := first.Server.Issue("server",
		Request{CommonName: "server", Hosts: []string{"127.0.0.1", "api.example.com"}})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("authorities outlive a restart", func(t *testing.T) {
		second, err := LoadOrCreate(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.CSRSigner.CertPEM, second.CSRSigner.CertPEM) {
			t.Error("the signer of node certificates is another")
		}
	})

	t.Run("a server's certificate is good for its names, by its own authority alone", func(t *testing.T) {
		loaded, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"127.0.0.1", "api.example.com"} {
			if _, err := loaded.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool(first.Server)}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := loaded.Leaf.Verify(x509.VerifyOptions{Roots: pool(first.CSRSigner)}); err == nil {
			t.Error("it is good by another authority as well")
		}
	})

	t.Run("keys are for their owner alone", func(t *testing.T) {
		for _, file := range []string{pair.KeyFile, first.Server.KeyFile, first.ServiceAccountKeyFile} {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %s", file, info.Mode())
			}
		}
	})

	t.Run("a damaged authority is an error and not a new one", func(t *testing.T) {
		if err := os.WriteFile(first.FrontProxy.CertFile, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadOrCreate(dir); err == nil {
			t.Error("no error")
		}
	})
}

func pool(ca *CA) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.CertPEM)
	return pool
}
