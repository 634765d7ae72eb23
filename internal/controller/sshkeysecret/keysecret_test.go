package sshkeysecret

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/internal/sshkey"
)

const namespace = "wmco"

// canary stands for secret data: no message may contain it.
const canary = "canary"

// rsaKeys returns one RSA key in each format that the commands of the guides write.
func rsaKeys(t *testing.T) map[string][]byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	openSSH, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"PKCS#1":  pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"PKCS#8":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
		"OpenSSH": pem.EncodeToMemory(openSSH),
	}
}

// secretWith returns the Secret with one data key.
func secretWith(key string, content []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName},
		Data:       map[string][]byte{key: content},
	}
}

// unusableSecrets returns Secrets without a usable key, by fault.
func unusableSecrets(t *testing.T) map[string]struct {
	secret  *corev1.Secret
	cause   error
	message string
} {
	t.Helper()
	good := rsaKeys(t)["PKCS#1"]
	return map[string]struct {
		secret  *corev1.Secret
		cause   error
		message string
	}{
		"whose key has another name": {secretWith("id_rsa", good), ErrMissing, "has no key " + SecretKey},
		"without data": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: SecretName}}, ErrMissing, "has no key " + SecretKey},
		"with an empty key":             {secretWith(SecretKey, nil), ErrInvalid, sshkey.ErrEmpty.Error()},
		"with garbage":                  {secretWith(SecretKey, []byte(canary)), ErrInvalid, sshkey.ErrNotPEM.Error()},
		"with a key that was cut short": {secretWith(SecretKey, good[:len(good)/2]), ErrInvalid, sshkey.ErrDamaged.Error()},
		"with garbage in PEM": {secretWith(SecretKey,
			pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: []byte(canary)})),
			ErrInvalid, sshkey.ErrDamaged.Error()},
		"with something after the key": {secretWith(SecretKey, append(bytes.Clone(good), canary...)), ErrInvalid,
			sshkey.ErrTrailing.Error()},
	}
}

// containsSecret reports whether a text contains a usefully long part of the secret data.
func containsSecret(text string, secret *corev1.Secret) bool {
	if strings.Contains(text, canary) {
		return true
	}
	for _, content := range secret.Data {
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); len(line) >= 16 && !strings.HasPrefix(line, "-----") &&
				strings.Contains(text, line) {
				return true
			}
		}
	}
	return false
}

//
func TestRead_AcceptsAllKeyFormats(t *testing.T) {
	var hash string
	for form, content := range rsaKeys(t) {
		t.Run("in form "+form, func(t *testing.T) {
			key, err := Read(t.Context(), fake.NewFakeClient(secretWith(SecretKey, content)), namespace)
			if err != nil || key.Signer() == nil || key.Algorithm != ssh.KeyAlgoRSA {
				t.Fatalf("got algorithm %q, error %v", key.Algorithm, err)
			}
			if hash != "" && key.Hash() != hash {
				t.Error("the form of the file changes the key")
			}
			hash = key.Hash()
		})
	}
}

//
func TestRead_ErrorNamesUnusableKey(t *testing.T) {
	for name, test := range unusableSecrets(t) {
		t.Run("a Secret "+name, func(t *testing.T) {
			_, err := Read(t.Context(), fake.NewFakeClient(test.secret), namespace)
			if !errors.Is(err, test.cause) {
				t.Fatalf("error is %v, want %v", err, test.cause)
			}
			for _, want := range []string{"Secret " + SecretName, "namespace " + namespace, test.message} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if containsSecret(err.Error(), test.secret) {
				t.Errorf("error %q repeats what the Secret holds", err)
			}
		})
	}
	//
	t.Run("a Secret that is not there yet is missing, and the remedy is a command for this namespace", func(t *testing.T) {
		_, err := Read(t.Context(), fake.NewFakeClient(), namespace)
		if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(),
			"Secret "+SecretName+" does not exist in namespace "+namespace) {
			t.Errorf("error is %v", err)
		}
		if remedy := FixHint(namespace); !strings.Contains(remedy, "create secret generic "+SecretName) ||
			!strings.Contains(remedy, SecretKey+"=") || !strings.Contains(remedy, "-n "+namespace+" ") {
			t.Errorf("remedy is %q", remedy)
		}
	})
	t.Run("a Secret of that name in another namespace is not ours", func(t *testing.T) {
		if _, err := Read(t.Context(), fake.NewFakeClient(secretWith(SecretKey, rsaKeys(t)["PKCS#1"])),
			"another"); !errors.Is(err, ErrMissing) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("a request that fails is neither: it is tried again", func(t *testing.T) {
		failure := errors.New("connection refused")
		_, err := Read(t.Context(), newFailingClient(failure), namespace)
		if !errors.Is(err, failure) || errors.Is(err, ErrMissing) || errors.Is(err, ErrInvalid) {
			t.Errorf("error is %v", err)
		}
	})
}

// newFailingClient returns a client with failing Get requests.
func newFailingClient(err error) client.Client {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
	}).Build()
}
