package clusterconfig

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAbsence_KeepsLastGoodClientCA(t *testing.T) {
	authority := string(servingCertificate(t).Data[corev1.TLSCertKey])
	clients := func(bundle string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
			Data:       map[string]string{"client-ca-file": bundle},
		}
	}
	begin := func(t *testing.T) *fixture {
		t.Helper()
		a := newFixture(t)
		a.createSecret(servingCertificate(t))
		a.requireNoError(a.client.Create(t.Context(), clients(authority)))
		a.readAndExpect(1)
		return a
	}
	demands := func(t *testing.T, a *fixture, want string) {
		t.Helper()
		facts, err := a.Current()
		a.requireNoError(err)
		if got := facts.MetricsServing.ClientCA; got != want {
			t.Errorf("exporters demand a certificate of %q, want %q", got, want)
		}
	}
	t.Run("for as long as they are damaged, with a notice", func(t *testing.T) {
		a := begin(t)
		a.requireNoError(a.client.Update(t.Context(), clients(authority[:len(authority)/2])))
		a.readAndExpect(0)
		a.readAfter(10*absenceGracePeriod, 0)
		demands(t, a, authority)
		notices := a.good.notices
		if len(notices) != 1 || notices[0].Object != "ConfigMap kube-system/extension-apiserver-authentication" ||
			!strings.Contains(notices[0].Message, "exporters keep the certificates") {
			t.Errorf("the notices are %v", notices)
		}
		next := string(servingCertificate(t).Data[corev1.TLSCertKey])
		a.requireNoError(a.client.Update(t.Context(), clients(next)))
		a.readAndExpect(1)
		demands(t, a, next)
		if notices := a.good.notices; len(notices) > 0 {
			t.Errorf("afterwards the notices are %v", notices)
		}
	})
	t.Run("while there are none for a moment", func(t *testing.T) {
		a := begin(t)
		a.requireNoError(a.client.Update(t.Context(), clients("")))
		if next := a.readAndExpect(0); next != absenceGracePeriod {
			t.Errorf("it reads again in %s", next)
		}
		demands(t, a, authority)
		a.readAfter(absenceGracePeriod, 1)
		demands(t, a, "")
	})
	t.Run("while they are absent for a moment", func(t *testing.T) {
		a := begin(t)
		a.requireNoError(a.client.Delete(t.Context(), clients("")))
		if next := a.readAndExpect(0); next != absenceGracePeriod {
			t.Errorf("it reads again in %s", next)
		}
		demands(t, a, authority)
		a.readAfter(absenceGracePeriod-time.Second, 0)
		a.requireNoError(a.client.Create(t.Context(), clients(authority)))
		a.readAndExpect(0)
		demands(t, a, authority)
	})
	t.Run("but an absence that lasts counts", func(t *testing.T) {
		a := begin(t)
		a.requireNoError(a.client.Delete(t.Context(), clients("")))
		a.readAndExpect(0)
		a.readAfter(absenceGracePeriod, 1)
		demands(t, a, "")
	})
}
