package sshkey_test

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// keys holds one key of each kind, generated once.
type keys struct {
	rsa     *rsa.PrivateKey
	ed25519 ed25519.PrivateKey
	ecdsa   map[string]*ecdsa.PrivateKey
}

func newKeys(t testing.TB) keys {
	t.Helper()
	k := keys{ecdsa: map[string]*ecdsa.PrivateKey{}}
	var err error
	if k.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if _, k.ed25519, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	for _, curve := range []elliptic.Curve{elliptic.P224(), elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		if k.ecdsa[curve.Params().Name], err = ecdsa.GenerateKey(curve, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func encodePKCS1(key *rsa.PrivateKey) []byte {
	return pemBlock("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
}

func encodePKCS8(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pemBlock("PRIVATE KEY", der)
}

func encodeSEC1(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pemBlock("EC PRIVATE KEY", der)
}

func openSSH(t testing.TB, key crypto.PrivateKey) []byte {
	t.Helper()
	b, err := ssh.MarshalPrivateKey(key, "comment")
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(b)
}

// L-24, D-11
func TestParse_AcceptsSupportedKeys(t *testing.T) {
	k := newKeys(t)
	parameters := pemBlock("EC PARAMETERS", []byte{0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07})
	crlf := func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")) }
	for name, c := range map[string]struct {
		pem       []byte
		public    any
		algorithm string
	}{
		"an RSA key in PKCS#1 form":      {encodePKCS1(k.rsa), &k.rsa.PublicKey, "ssh-rsa"},
		"a key that Notepad has saved":   {append([]byte("\xef\xbb\xbf"), crlf(openSSH(t, k.ed25519))...), k.ed25519.Public(), "ssh-ed25519"},
		"an RSA key in PKCS#8 form":      {encodePKCS8(t, k.rsa), &k.rsa.PublicKey, "ssh-rsa"},
		"an RSA key in OpenSSH form":     {openSSH(t, k.rsa), &k.rsa.PublicKey, "ssh-rsa"},
		"an Ed25519 key in PKCS#8 form":  {encodePKCS8(t, k.ed25519), k.ed25519.Public(), "ssh-ed25519"},
		"an Ed25519 key in OpenSSH form": {openSSH(t, k.ed25519), k.ed25519.Public(), "ssh-ed25519"},
		"an ECDSA P-256 key in SEC 1 form": {encodeSEC1(t, k.ecdsa["P-256"]), k.ecdsa["P-256"].Public(),
			"ecdsa-sha2-nistp256"},
		"an ECDSA P-256 key with its parameters before": {append(parameters, encodeSEC1(t, k.ecdsa["P-256"])...),
			k.ecdsa["P-256"].Public(), "ecdsa-sha2-nistp256"},
		"an ECDSA P-384 key in PKCS#8 form": {encodePKCS8(t, k.ecdsa["P-384"]), k.ecdsa["P-384"].Public(),
			"ecdsa-sha2-nistp384"},
		"an ECDSA P-521 key in OpenSSH form": {openSSH(t, k.ecdsa["P-521"]), k.ecdsa["P-521"].Public(),
			"ecdsa-sha2-nistp521"},
		"a key with the line ends of Windows": {crlf(encodePKCS1(k.rsa)), &k.rsa.PublicKey, "ssh-rsa"},
		"a key between blank lines": {[]byte("\n \n" + string(encodePKCS1(k.rsa)) + "\n\n"),
			&k.rsa.PublicKey, "ssh-rsa"},
		"a key without the last newline": {bytes.TrimSpace(openSSH(t, k.ed25519)),
			k.ed25519.Public(), "ssh-ed25519"},
		"a key after a byte order mark and Windows lines": {append([]byte("\xef\xbb\xbf\r\n"), crlf(encodePKCS1(k.rsa))...),
			&k.rsa.PublicKey, "ssh-rsa"},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := sshkey.Parse(c.pem)
			if err != nil {
				t.Fatal(err)
			}
			public, err := ssh.NewPublicKey(c.public)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
			if key.AuthorizedKey() != want {
				t.Errorf("authorized key %q, want %q", key.AuthorizedKey(), want)
			}
			// The hash covers the line without its newline.
			if sum := sha256.Sum256([]byte(want)); key.Hash() != hex.EncodeToString(sum[:]) {
				t.Errorf("hash %s is not that of the authorized-keys line", key.Hash())
			}
			if key.Algorithm != c.algorithm {
				t.Errorf("algorithm %s, want %s", key.Algorithm, c.algorithm)
			}
			if key.Fingerprint() != ssh.FingerprintSHA256(public) {
				t.Errorf("fingerprint %s", key.Fingerprint())
			}
			signature, err := key.Signer().Sign(rand.Reader, []byte("login"))
			if err != nil {
				t.Fatal(err)
			}
			if err := public.Verify([]byte("login"), signature); err != nil {
				t.Error(err)
			}
		})
	}
}

// R-027, D-11: each wrong content has a separate error.
func TestParse_DistinctErrorForEachInvalidKey(t *testing.T) {
	k := newKeys(t)
	good := encodePKCS1(k.rsa)
	public, _ := ssh.NewPublicKey(&k.rsa.PublicKey)
	x25519, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content []byte
		want    error
	}{
		"nothing":                  {nil, sshkey.ErrEmpty},
		"only white space":         {[]byte(" \r\n\t"), sshkey.ErrEmpty},
		"a sentence":               {[]byte("paste your key here"), sshkey.ErrNotPEM},
		"a JSON object":            {[]byte(`{"key":"value"}`), sshkey.ErrNotPEM},
		"base64 of a key":          {[]byte(base64.StdEncoding.EncodeToString(good)), sshkey.ErrEncodedTwice},
		"an authorized_keys line":  {ssh.MarshalAuthorizedKey(public), sshkey.ErrPublicKey},
		"a public key in PEM form": {pemBlock("PUBLIC KEY", []byte("x")), sshkey.ErrPublicKey},
		"a public key in RFC 4716 form": {[]byte("---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----"),
			sshkey.ErrPublicKey},
		"an SSH certificate":             {[]byte("ssh-rsa-cert-v01@openssh.com AAAAB3 user"), sshkey.ErrCertificate},
		"an X.509 certificate":           {pemBlock("CERTIFICATE", []byte("x")), sshkey.ErrCertificate},
		"a PKCS#1 key with passphrase":   {encryptedPKCS1(), sshkey.ErrEncrypted},
		"a PKCS#8 key with passphrase":   {pemBlock("ENCRYPTED PRIVATE KEY", []byte("x")), sshkey.ErrEncrypted},
		"an OpenSSH key with passphrase": {encryptedOpenSSH(t, k.ed25519), sshkey.ErrEncrypted},
		"a PuTTY key": {[]byte("PuTTY-User-Key-File-3: ssh-rsa\r\nEncryption: none\r\n"),
			sshkey.ErrPuTTY},
		"a DSA key":                              {pemBlock("DSA PRIVATE KEY", []byte("x")), sshkey.ErrDSA},
		"a DSA key in PKCS#8 form":               {dsaInPKCS8(t), sshkey.ErrDSA},
		"an RSA key of 1024 bits":                {encodePKCS1(shortRSA(t)), sshkey.ErrShortRSA},
		"an RSA key of 1024 bits in PKCS#8 form": {encodePKCS8(t, shortRSA(t)), sshkey.ErrShortRSA},
		"an RSA key of 512 bits":                 {tinyRSA(t), sshkey.ErrShortRSA},
		"an ECDSA key on P-224":                  {encodeSEC1(t, k.ecdsa["P-224"]), sshkey.ErrUnsupported},
		"a key for key agreement":                {encodePKCS8(t, x25519), sshkey.ErrUnsupported},
		"a PGP key":                              {pemBlock("PGP PRIVATE KEY BLOCK", []byte("x")), sshkey.ErrUnsupported},
		"a key cut in its middle":                {good[:len(good)/2], sshkey.ErrDamaged},
		"a key with damaged content":             {pemBlock("RSA PRIVATE KEY", []byte("not DER")), sshkey.ErrDamaged},
		"a damaged OpenSSH key": {pemBlock("OPENSSH PRIVATE KEY", []byte("openssh-key-v1\x00")),
			sshkey.ErrDamaged},
		"two keys":                     {append(bytes.Clone(good), good...), sshkey.ErrTrailing},
		"a key and something after it": {append(bytes.Clone(good), "rest"...), sshkey.ErrTrailing},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := sshkey.Parse(c.content)
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if key.Signer() != nil {
				t.Error("a refused key signs")
			}
		})
	}
}

func encryptedPKCS1() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: []byte("x"),
		Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00112233445566778899AABBCCDDEEFF"}})
}

func encryptedOpenSSH(t *testing.T, key crypto.PrivateKey) []byte {
	t.Helper()
	b, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("passphrase"))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(b)
}

func dsaInPKCS8(t *testing.T) []byte {
	t.Helper()
	der, err := asn1.Marshal(struct {
		Version   int
		Algorithm struct{ Algorithm asn1.ObjectIdentifier }
		Key       []byte
	}{Algorithm: struct{ Algorithm asn1.ObjectIdentifier }{asn1.ObjectIdentifier{1, 2, 840, 10040, 4, 1}},
		Key: []byte{2, 1, 5}})
	if err != nil {
		t.Fatal(err)
	}
	return pemBlock("PRIVATE KEY", der)
}

func shortRSA(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// tinyRSA returns a key so short that the standard library refuses to read it. The numbers are not a real pair.
func tinyRSA(t *testing.T) []byte {
	t.Helper()
	n := shortRSA(t).N
	n.Rsh(n, 512)
	der, err := asn1.Marshal(struct {
		Version int
		N       any
		E, D    int
	}{N: n, E: 65537, D: 3})
	if err != nil {
		t.Fatal(err)
	}
	return pemBlock("RSA PRIVATE KEY", der)
}

func TestKey_RedactedInAllFormats(t *testing.T) {
	k := newKeys(t)
	key, err := sshkey.Parse(encodePKCS1(k.rsa))
	if err != nil {
		t.Fatal(err)
	}
	secret := k.rsa.D.String()
	held := struct{ Key sshkey.Key }{key}
	var shown bytes.Buffer
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		fmt.Fprintf(&shown, format, key)
		fmt.Fprintf(&shown, format, &key)
		fmt.Fprintf(&shown, format, held)
	}
	if err := json.NewEncoder(&shown).Encode(held); err != nil {
		t.Fatal(err)
	}
	slog.New(slog.NewTextHandler(&shown, nil)).Info("login", "key", key, "held", held)
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("login", "key", key, "held", held)
	text := shown.String()
	if strings.Contains(text, secret) || strings.Contains(text, k.rsa.D.Text(16)) || strings.Contains(text, "AAAAB3") {
		t.Errorf("the key shows in %s", text)
	}
	if !strings.Contains(text, "redacted") {
		t.Errorf("%s", text)
	}
}

// canary is part of every malformed input; errors must not contain it.
const canary = "CANARY7f3aSECRET"

func TestParse_ErrorOmitsInput(t *testing.T) {
	inputs := [][]byte{
		[]byte(canary),
		[]byte("ssh-rsa " + canary + " " + canary),
		[]byte("-----BEGIN " + canary + "-----\nAAAA\n-----END " + canary + "-----\n"),
		[]byte("PuTTY-User-Key-File-2: " + canary),
		[]byte(canary + "-cert-v01@openssh.com AAAA"),
		append(pemBlock("RSA PRIVATE KEY", []byte(canary)), canary...),
		[]byte(base64.StdEncoding.EncodeToString(pemBlock("PRIVATE KEY", []byte(canary)))),
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{canary: canary},
			Bytes: []byte(canary)}),
	}
	for _, kind := range []string{"RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY",
		"DSA PRIVATE KEY"} {
		inputs = append(inputs, pemBlock(kind, []byte(canary)), pemBlock(kind, []byte("openssh-key-v1\x00"+canary)))
	}
	for _, input := range inputs {
		_, err := sshkey.Parse(input)
		if err == nil {
			t.Fatalf("accepted %q", input)
		}
		if strings.Contains(fmt.Sprintf("%+v %#v", err, err), canary) {
			t.Errorf("the error repeats the input: %v", err)
		}
	}
}

func FuzzParse(f *testing.F) {
	k := newKeys(f)
	for _, seed := range [][]byte{
		nil, []byte(canary), encodePKCS1(k.rsa), encodePKCS8(f, k.ed25519), openSSH(f, k.ed25519), encodeSEC1(f, k.ecdsa["P-256"]),
		encryptedPKCS1(), []byte("PuTTY-User-Key-File-3: x"), []byte("ssh-rsa AAAA"),
		pemBlock("DSA PRIVATE KEY", []byte{0x30, 0}),
	} {
		f.Add(seed)
	}
	known := []error{
		sshkey.ErrEmpty, sshkey.ErrNotPEM, sshkey.ErrEncodedTwice, sshkey.ErrPublicKey, sshkey.ErrCertificate,
		sshkey.ErrEncrypted,
		sshkey.ErrPuTTY, sshkey.ErrDSA, sshkey.ErrShortRSA, sshkey.ErrTrailing, sshkey.ErrUnsupported, sshkey.ErrDamaged,
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		key, err := sshkey.Parse(data)
		if err == nil {
			if key.Signer() == nil || key.AuthorizedKey() == "" {
				t.Error("an accepted key is not usable")
			}
			return
		}
		// A constant text cannot contain the input.
		if !slices.Contains(known, err) {
			t.Errorf("an error of its own making: %v", err)
		}
	})
}
