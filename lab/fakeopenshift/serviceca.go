package fakeopenshift

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// servingSecret is the annotation that requests a Secret with a serving certificate for a Service.
const servingSecret = "service.beta.openshift.io/serving-cert-secret-name"

// servingValidity is the validity of serving certificates, equal to the validity in OpenShift.
const servingValidity = 2 * 365 * 24 * time.Hour

// serveServices creates a Secret with a serving certificate for each Service that requests one, as the service
// CA operator does. An existing Secret is not changed; a deleted Secret is recreated.
func (s *simulator) serveServices(ctx context.Context, ca *serviceCA) (*controller, error) {
	sync := func(ctx context.Context, key string) error {
		namespace, name, err := cache.SplitMetaNamespaceKey(key)
		if err != nil {
			return err
		}
		return s.serveService(ctx, ca, namespace, name)
	}
	c := newController("service-ca", s.log, sync)
	byKey := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			c.queue.Add(key)
		}
	}
	byOwner := func(object any) {
		secret, ok := object.(*corev1.Secret)
		if !ok {
			return
		}
		for _, owner := range secret.OwnerReferences {
			if owner.Kind == "Service" {
				c.queue.Add(secret.Namespace + "/" + owner.Name)
			}
		}
	}
	factory := informers.NewSharedInformerFactory(s.client, 0)
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandlerFuncs{
		factory.Core().V1().Services().Informer(): {AddFunc: byKey, UpdateFunc: func(_, object any) { byKey(object) }},
		factory.Core().V1().Secrets().Informer():  {DeleteFunc: byOwner},
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	factory.StartWithContext(ctx)
	// The deletion of a Secret before the cache sync would be missed.
	factory.WaitForCacheSyncWithContext(ctx)
	return c, nil
}

func (s *simulator) serveService(ctx context.Context, ca *serviceCA, namespace, name string) error {
	service, err := s.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ignoreGone(err)
	}
	secretName := service.Annotations[servingSecret]
	if secretName == "" || service.DeletionTimestamp != nil {
		return nil
	}
	certificate, key, err := ca.issueCertificate(name + "." + namespace + ".svc")
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secretName, Namespace: namespace, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service")),
		}},
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		s.log.Info("made a serving certificate", "service", namespace+"/"+name, "secret", secretName)
	}
	return err
}

// serviceCA signs serving certificates.
type serviceCA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newServiceCA() (*serviceCA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "openshift-service-serving-signer@lab"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(servingValidity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the service CA: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	return &serviceCA{certificate, key}, err
}

// issueCertificate returns a certificate, followed by the certificate of the CA, and the key, both in PEM.
func (ca *serviceCA) issueCertificate(name string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name, name + ".cluster.local"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: ca.certificate.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, &private.PublicKey, ca.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate for %s: %w", name, err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	certificate = append(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.certificate.Raw})...)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), nil
}
