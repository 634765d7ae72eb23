package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// servingCertificate creates a certificate with its key, both in PEM.
func servingCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "exporter"},
		NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}))
}

func servingSecret(certificate, key string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "windows-machine-config-operator-tls"},
		Data:       map[string][]byte{"tls.crt": []byte(certificate), "tls.key": []byte(key)},
	}
}

func TestExporter_ServesWithServiceCACertificate(t *testing.T) {
	certificate, key := servingCertificate(t)
	_, otherKey := servingCertificate(t)
	facts, notices := withObjects(t, servingSecret(certificate, key)).readValid(t)
	expectNotices(t, notices)
	if got := facts.MetricsServing; got.Certificate != certificate || string(got.Key) != key {
		t.Errorf("got %+v", got)
	}
	for name, secret := range map[string]*corev1.Secret{
		"no key":                       servingSecret(certificate, ""),
		"no certificate":               servingSecret("", key),
		"the key of another":           servingSecret(certificate, otherKey),
		"an invalid certificate":       servingSecret("canary", key),
		"an invalid key":               servingSecret(certificate, "canary"),
		"the key as a certificate too": servingSecret(key, key),
	} {
		t.Run(name+" makes no exporter serve plain HTTP", func(t *testing.T) {
			_, err := withObjects(t, secret).read(t)
			var fault *Error
			if !errors.As(err, &fault) || fault.Object != "Secret wmco/windows-machine-config-operator-tls" ||
				strings.Contains(err.Error(), "canary") {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// L-01, L-02
func TestSecrets_NotPrinted(t *testing.T) {
	certificate, key := servingCertificate(t)
	f := withObjects(t,
		proxyWith(configv1.ProxyStatus{HTTPProxy: "http://user:canary1@proxy:80",
			HTTPSProxy: "http://user:canary2@proxy:80"}),
		pullSecretWith(`{"auths":{"m.example.com":{"auth":"`+encodeBase64("user:canary3")+
			`"},"n.example.com":{"username":"user","password":"canary4","identitytoken":"canary5"},`+
			`"o.example.com":{"auth":"canary6!"},"p.example.com":{"registrytoken":"canary7"}}}`),
		digestMirrors("a", digestEntry("quay.io", "m.example.com", "n.example.com")),
		servingSecret(certificate, key),
	)
	facts, notices := f.readValid(t)
	if len(facts.Registries.Hosts) == 0 || facts.Registries.Hosts[0].Mirrors[0].Authorization == "" {
		t.Fatal("the test's secrets are not read")
	}
	secrets := []string{"canary", encodeBase64("user:canary3"), encodeBase64("user:canary4"), strings.Split(key, "\n")[1]}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, output := range []string{fmt.Sprintf(format, facts), fmt.Sprintf(format, &facts),
			fmt.Sprintf(format, facts.Registries), fmt.Sprintf(format, notices)} {
			for _, secret := range secrets {
				if strings.Contains(output, secret) || strings.Contains(output, fmt.Sprintf("%x", secret)) {
					t.Errorf("%s prints %q", format, secret)
				}
			}
		}
	}
}

func TestRead_MissingOptionalKindIsNoError(t *testing.T) {
	optional := func(object any) bool {
		switch object.(type) {
		case *configv1.Proxy, *configv1.Image, *configv1.ImageDigestMirrorSetList, *configv1.ImageTagMirrorSetList,
			*configv1.ClusterImagePolicyList, *configv1.ImagePolicyList, *operatorv1alpha1.ImageContentSourcePolicyList,
			*machineconfigv1.KubeletConfigList, *machineconfigv1.ContainerRuntimeConfigList, *operatorv1.MachineConfigurationList:
			return true
		}
		return false
	}
	answering := func(err error) client.Reader {
		return interceptor.NewClient(newFixture(t).newClient(t).(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
				options ...client.GetOption) error {
				if optional(object) {
					return err
				}
				return c.Get(ctx, key, object, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if optional(list) {
					return err
				}
				return c.List(ctx, list, options...)
			},
		})
	}
	for name, err := range map[string]error{
		"as discovery says it": &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "config.openshift.io",
			Kind: "Proxy"}},
		"as the API server says it": apierrors.NewNotFound(schema.GroupResource{Group: "config.openshift.io",
			Resource: "proxies"}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			if _, notices, err := Read(t.Context(), answering(err), operatorNamespace, nodespec.ServingCertificate{}); err != nil || len(notices) > 0 {
				t.Errorf("error %v, notices %v", err, notices)
			}
		})
	}
	t.Run("but a request that fails is one that may succeed later", func(t *testing.T) {
		failure := errors.New("connection refused")
		_, _, err := Read(t.Context(), answering(failure), operatorNamespace, nodespec.ServingCertificate{})
		var fault *Error
		if !errors.Is(err, failure) || errors.As(err, &fault) {
			t.Errorf("error is %v", err)
		}
	})
}
