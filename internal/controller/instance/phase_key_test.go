package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// storeKeys changes the Secret, as an administrator does.
func (x *trial) storeKeys(data map[string][]byte) {
	x.t.Helper()
	secret := &corev1.Secret{}
	if err := x.Client.Get(x.t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: sshkeysecret.SecretName},
		secret); err != nil {
		x.t.Fatal(err)
	}
	secret.Data = data
	if err := x.Client.Update(x.t.Context(), secret); err != nil {
		x.t.Fatal(err)
	}
}

//
func TestPrivateKey_ChangeRecordedAfterLogin(t *testing.T) {
	sources := map[string]v1alpha1.Source{
		"of a Machine":           machineInstance().Spec.Source,
		"from windows-instances": {ConfigMapKey: "10.0.128.7"},
	}
	for name, source := range sources {
		t.Run("is noted for a node "+name+" when its host was reached with it, and not before", func(t *testing.T) {
			x := newTrial(t)
			instance := machineInstance()
			instance.Spec.Source = source
			x.asNode(instance, x.key.Hash())
			private, present := newPrivateKey(t)
			x.storeKeys(map[string][]byte{sshkeysecret.SecretKey: private})
			var last time.Duration
			for range 8 {
				instance, last = x.reconcile()
			}
			if last > maxRetryDelay {
				t.Errorf("the next look is in %s", last)
			}
			expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			behind := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, string(remote.ReasonAuthenticationFailed))
			if !strings.Contains(behind.Message, "was changed") || !strings.Contains(instance.Status.NextAction, sshkeysecret.SecretPreviousKey) {
				t.Errorf("the message is %q, next is %q", behind.Message, instance.Status.NextAction)
			}
			if instance.Status.PublicKeyHash != x.key.Hash() || x.getNode().Annotations[v1alpha1.AnnotationPubKeyHash] != x.key.Hash() {
				t.Error("the new key is noted before it was of use")
			}
			if events := x.popEvents(); len(events) != 1 {
				t.Errorf("the events are %q", events)
			}

			x.host.authorizeKeys(present.AuthorizedKey())
			instance, _ = x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			if instance.Status.PublicKeyHash != present.Hash() || x.getNode().Annotations[v1alpha1.AnnotationPubKeyHash] != present.Hash() {
				t.Error("the new key is not noted")
			}
			if _, execs := x.host.loginsAndExecs(); execs > 0 || x.Hosts.Len() > 0 || instance.Status.SpecDigest == "" {
				t.Errorf("%d programs were run, %d connections are open, digest %q", execs, x.Hosts.Len(), instance.Status.SpecDigest)
			}
			dials := x.countDials()
			if x.reconcile(); x.countDials() > dials {
				t.Error("the host is contacted again")
			}
		})
	}
	t.Run("leaves a node alone whose host is off for the moment", func(t *testing.T) {
		x := newTrial(t)
		x.asNode(machineInstance(), "another")
		x.host.switchOff(true)
		instance, after := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, string(remote.ReasonUnreachable))
		if after != minRetryDelay {
			t.Errorf("next look in %s", after)
		}
	})
	t.Run("does not hide that a node is not Ready", func(t *testing.T) {
		x := newTrial(t)
		x.asNode(machineInstance(), "another")
		node := x.getNode()
		node.Status.Conditions[0].Status = corev1.ConditionFalse
		if err := x.Client.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		x.host.switchOff(true)
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, string(remote.ReasonUnreachable))
	})
}

//
func TestPrivateKey_PreviousKeyInstallsCurrentKey(t *testing.T) {
	t.Run("which is added to those that the host accepts", func(t *testing.T) {
		x := newTrial(t)
		x.asNode(machineInstance(), x.key.Hash())
		previous := x.previousKey()
		private, present := newPrivateKey(t)
		x.storeKeys(map[string][]byte{sshkeysecret.SecretKey: private, sshkeysecret.SecretPreviousKey: previous})
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		logins, execs := x.host.loginsAndExecs()
		if !slices.Equal(logins, []string{x.key.Fingerprint(), present.Fingerprint()}) || execs > 0 {
			t.Errorf("logins with %q, %d programs", logins, execs)
		}
		content, err := x.host.readAuthorizedKeys()
		if err != nil || !strings.Contains(string(content), present.AuthorizedKey()) || !strings.Contains(string(content),
			x.key.AuthorizedKey()) {
			t.Errorf("the host accepts %q, error %v", content, err)
		}
		if instance.Status.PublicKeyHash != present.Hash() {
			t.Error("the present key is not noted")
		}
	})
	t.Run("unless it is refused too", func(t *testing.T) {
		x := newTrial(t)
		x.asNode(machineInstance(), x.key.Hash())
		previous, _ := newPrivateKey(t)
		private, present := newPrivateKey(t)
		x.storeKeys(map[string][]byte{sshkeysecret.SecretKey: private, sshkeysecret.SecretPreviousKey: previous})
		instance, _ := x.reconcile()
		behind := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse,
			string(remote.ReasonAuthenticationFailed))
		if !strings.Contains(behind.Message, present.Fingerprint()) {
			t.Errorf("the message %q does not name the present key", behind.Message)
		}
	})
	t.Run("or cannot be used", func(t *testing.T) {
		x := newTrial(t)
		x.asNode(machineInstance(), x.key.Hash())
		private, _ := newPrivateKey(t)
		x.storeKeys(map[string][]byte{sshkeysecret.SecretKey: private, sshkeysecret.SecretPreviousKey: []byte("no key")})
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, string(remote.ReasonAuthenticationFailed))
	})
	t.Run("but only at the host whose key is pinned", func(t *testing.T) {
		x := newTrial(t)
		x.asNode(machineInstance(), x.key.Hash())
		previous := x.previousKey()
		private, present := newPrivateKey(t)
		x.storeKeys(map[string][]byte{sshkeysecret.SecretKey: private, sshkeysecret.SecretPreviousKey: previous})
		x.host.exchangeHostKey()
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, string(remote.ReasonHostKeyChanged))
		if content, _ := x.host.readAuthorizedKeys(); strings.Contains(string(content), present.AuthorizedKey()) {
			t.Error("another host was given the key")
		}
	})
}
