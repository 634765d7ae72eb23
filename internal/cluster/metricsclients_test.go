package cluster

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func clientsWith(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"}, Data: data}
}

func TestExporter_HasClientAuthoritiesOfMonitoring(t *testing.T) {
	certificate, key := servingCertificate(t)
	first, _ := servingCertificate(t)
	second, _ := servingCertificate(t)
	read := func(t *testing.T, data map[string]string) (string, error) {
		t.Helper()
		facts, err := withObjects(t, servingSecret(certificate, key), clientsWith(data)).read(t)
		return facts.MetricsServing.ClientCA, err
	}
	t.Run("both while they rotate, in whatever order", func(t *testing.T) {
		got, err := read(t, map[string]string{"client-ca-file": first + "\n" + second, "requestheader-client-ca-file": certificate})
		turned, turnedErr := read(t, map[string]string{"client-ca-file": second + first + second})
		if err != nil || turnedErr != nil || got != turned || len(got) != len(first)+len(second) ||
			!strings.Contains(got, first) || !strings.Contains(got, second) {
			t.Errorf("got %q and %q, errors %v and %v", got, turned, err, turnedErr)
		}
	})
	for name, data := range map[string]map[string]string{
		"no key":       {"requestheader-client-ca-file": certificate},
		"an empty key": {"client-ca-file": "\n"},
	} {
		t.Run(name+" lets any client in", func(t *testing.T) {
			if got, err := read(t, data); got != "" || err != nil {
				t.Errorf("got %q, error %v", got, err)
			}
		})
	}
	for name, content := range map[string]string{
		"text":                    "none",
		"half a certificate":      first[:len(first)/2],
		"one and half of another": first + second[:len(second)/2],
		"damaged bytes":           "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n",
		"another value in DER":    "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
	} {
		t.Run(name+" opens no exporter to all", func(t *testing.T) {
			_, err := read(t, map[string]string{"client-ca-file": content})
			var fault *Error
			if !errors.As(err, &fault) || fault.Object != "ConfigMap kube-system/extension-apiserver-authentication" ||
				!strings.Contains(fault.Message, "kube-apiserver") {
				t.Errorf("error is %v", err)
			}
		})
	}
	t.Run("a cluster without a certificate for exporters has nothing to demand any with", func(t *testing.T) {
		facts, err := withObjects(t, clientsWith(map[string]string{"client-ca-file": "damaged"})).read(t)
		if err != nil || facts.MetricsServing.ClientCA != "" {
			t.Errorf("got %q, error %v", facts.MetricsServing.ClientCA, err)
		}
	})
	t.Run("ConfigMaps of that name elsewhere are nothing to it", func(t *testing.T) {
		other := clientsWith(map[string]string{"client-ca-file": first})
		other.Namespace = operatorNamespace
		if facts, err := withObjects(t, servingSecret(certificate, key), other).read(t); err != nil || facts.MetricsServing.ClientCA != "" {
			t.Errorf("got %q, error %v", facts.MetricsServing.ClientCA, err)
		}
	})
}
