package secretscan

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"testing"
)

func TestSecrets_KeyOfPairFoundPublicPartIgnored(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pair := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	secrets := Secrets{}
	if err := secrets.AddPair("key", append([]byte("a certificate\n"), pair...)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"as a file": string(pair), "as a Secret holds it": base64.StdEncoding.EncodeToString(pair)} {
		if len(secrets.In([]byte(text))) != 1 {
			t.Errorf("%s it is not found", name)
		}
	}
	public, err := key.PublicKey.ECDH()
	if err != nil {
		t.Fatal(err)
	}
	for shift := range 3 { // possible starts of the base64 encoding
		text := base64.StdEncoding.EncodeToString(append(make([]byte, shift), public.Bytes()...))
		if len(secrets.In([]byte(text))) != 0 {
			t.Errorf("the public key is found: %s", text)
		}
	}
}
