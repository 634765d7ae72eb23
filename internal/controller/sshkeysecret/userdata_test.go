package sshkeysecret

import (
	"bytes"
	"context"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func goodSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	return secretWith(SecretKey, rsaKeys(t)["PKCS#1"])
}

// userData returns the Secret in a namespace; nil if there is none.
func (r *trial) userData(t *testing.T, namespace string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: userdata.SecretName}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// hasPublicKey reports whether user data contains the public key for the key in a Secret.
func hasPublicKey(t *testing.T, userData, key *corev1.Secret) bool {
	t.Helper()
	parsed, err := sshkey.Parse(key.Data[SecretKey])
	if err != nil {
		t.Fatal(err)
	}
	settings, err := userdata.ParseHeader(userData.Data[userdata.SecretKey])
	return err == nil && settings.PublicKey == parsed.AuthorizedKey()
}

func expectOneEvent(t *testing.T, recorded []string, reason string) {
	t.Helper()
	if len(recorded) != 1 || !strings.Contains(recorded[0], " "+reason+" ") {
		t.Errorf("events %q, want one %s", recorded, reason)
	}
}

func expectNoEvents(t *testing.T, recorded []string) {
	t.Helper()
	if len(recorded) > 0 {
		t.Errorf("events %q", recorded)
	}
}

//
func TestUserData_CreatedAndUpdated(t *testing.T) {
	const machines = "openshift-machine-api"
	key := goodSecret(t)
	r := newTrial(key, newNamespace(machines))
	t.Run("it is made as soon as there is a key, with its public half", func(t *testing.T) {
		expectOneEvent(t, r.reconcile(t), "UserDataCreated")
		created := r.userData(t, machines)
		if created == nil || created.Type != corev1.SecretTypeOpaque || created.Labels[v1alpha1.LabelManagedBy] != v1alpha1.OperatorName || !hasPublicKey(t, created, key) {
			t.Fatalf("it is %+v", created.GetLabels())
		}
		if !bytes.HasPrefix(created.Data[userdata.SecretKey], []byte("<powershell>\n")) {
			t.Error("it is not in the platform's form")
		}
	})
	t.Run("nothing is written or told when nothing changed", func(t *testing.T) {
		before := r.userData(t, machines).ResourceVersion
		expectNoEvents(t, r.reconcile(t))
		if r.userData(t, machines).ResourceVersion != before {
			t.Error("it was written")
		}
	})
	t.Run("it is not made where there is no namespace for it, and when there is", func(t *testing.T) {
		if r.userData(t, ClusterAPINamespace) != nil {
			t.Fatal("it is there already")
		}
		if err := r.Client.Create(t.Context(), newNamespace(ClusterAPINamespace)); err != nil {
			t.Fatal(err)
		}
		expectOneEvent(t, r.reconcile(t), "UserDataCreated")
		if created := r.userData(t, ClusterAPINamespace); created == nil || !maps.EqualFunc(created.Data, r.userData(t, machines).Data, bytes.Equal) {
			t.Errorf("it is %+v", created.GetLabels())
		}
	})
	t.Run("an edit is corrected, and what others have put there stays", func(t *testing.T) {
		edited := r.userData(t, machines)
		edited.Data[userdata.SecretKey] = []byte("shutdown /s")
		edited.Data["notes"] = []byte("mine")
		edited.Labels = map[string]string{"team": "windows"}
		edited.Annotations = map[string]string{"who": "me"}
		if err := r.Client.Update(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		expectOneEvent(t, r.reconcile(t), "UserDataRestored")
		got := r.userData(t, machines)
		if !hasPublicKey(t, got, key) || string(got.Data["notes"]) != "mine" || got.Labels["team"] != "windows" || got.Labels[v1alpha1.LabelManagedBy] != v1alpha1.OperatorName || got.Annotations["who"] != "me" {
			t.Errorf("it is %+v with %d keys", got.ObjectMeta, len(got.Data))
		}
		expectNoEvents(t, r.reconcile(t))
	})
	t.Run("a Secret whose data was taken away is corrected", func(t *testing.T) {
		edited := r.userData(t, machines)
		edited.Data = nil
		if err := r.Client.Update(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		expectOneEvent(t, r.reconcile(t), "UserDataRestored")
	})
	t.Run("a label that was taken away is put back without a word", func(t *testing.T) {
		edited := r.userData(t, machines)
		edited.Labels = nil
		if err := r.Client.Update(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		expectNoEvents(t, r.reconcile(t))
		if r.userData(t, machines).Labels[v1alpha1.LabelManagedBy] != v1alpha1.OperatorName {
			t.Error("it is not there")
		}
	})
	t.Run("one that was deleted is made again", func(t *testing.T) {
		if err := r.Client.Delete(t.Context(), r.userData(t, machines)); err != nil {
			t.Fatal(err)
		}
		expectOneEvent(t, r.reconcile(t), "UserDataRestored")
		if !hasPublicKey(t, r.userData(t, machines), key) {
			t.Error("it is another")
		}
	})
	t.Run("a key that cannot be used leaves it alone", func(t *testing.T) {
		before := r.userData(t, machines).ResourceVersion
		broken := key.DeepCopy()
		broken.ResourceVersion = ""
		broken.Data[SecretKey] = []byte(canary)
		if err := r.Client.Update(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
		expectOneEvent(t, r.reconcile(t), "PrivateKeyInvalid")
		if r.userData(t, machines).ResourceVersion != before {
			t.Error("it was written")
		}
	})
	t.Run("no key leaves it alone", func(t *testing.T) {
		before := r.userData(t, machines).ResourceVersion
		if err := r.Client.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		expectNoEvents(t, r.reconcile(t))
		if r.userData(t, machines).ResourceVersion != before {
			t.Error("it was written")
		}
	})
	t.Run("another key is put into both", func(t *testing.T) {
		next := goodSecret(t)
		if err := r.Client.Create(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if recorded := r.reconcile(t); len(recorded) != 2 || !strings.Contains(recorded[0]+recorded[1], "UserDataUpdated") {
			t.Errorf("events %q", recorded)
		}
		for _, namespace := range userDataNamespaces {
			if !hasPublicKey(t, r.userData(t, namespace), next) {
				t.Errorf("in %s it is another", namespace)
			}
		}
	})
	if text := r.logged.String(); containsSecret(text, key) {
		t.Errorf("the log holds the key: %q", text)
	}
}

func TestUserData_HandlesUnusualClusters(t *testing.T) {
	t.Run("a cluster without the Machine API has none, and that is no error", func(t *testing.T) {
		r := newTrial(goodSecret(t))
		expectNoEvents(t, r.reconcile(t))
		if r.userData(t, "openshift-machine-api") != nil {
			t.Error("it was made")
		}
	})
	t.Run("a cluster whose platform is not known yet is looked at again soon", func(t *testing.T) {
		r := newTrial(goodSecret(t), newNamespace("openshift-machine-api"))
		r.Cluster = platform("")
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: SecretName}})
		if err != nil || result.RequeueAfter != platformPollInterval || r.userData(t, "openshift-machine-api") != nil {
			t.Errorf("result %+v, error %v", result, err)
		}
	})
	t.Run("an operator that is started anew takes over what is there", func(t *testing.T) {
		key := goodSecret(t)
		r := newTrial(key, newNamespace("openshift-machine-api"))
		r.reconcile(t)
		next := &trial{Reconciler: newReconciler(r.Client, r.recorder), recorder: r.recorder}
		expectNoEvents(t, next.reconcile(t))
	})
	t.Run("user data of an older operator is brought up to date", func(t *testing.T) {
		old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: userdata.SecretName}, Data: map[string][]byte{userdata.SecretKey: []byte("<powershell>old</powershell>")}}
		r := newTrial(goodSecret(t), newNamespace("openshift-machine-api"), old)
		expectOneEvent(t, r.reconcile(t), "UserDataUpdated")
	})
	t.Run("a namespace that is being deleted is left alone", func(t *testing.T) {
		terminating := newNamespace("openshift-machine-api")
		now := metav1.Now()
		terminating.DeletionTimestamp, terminating.Finalizers = &now, []string{"kubernetes"}
		r := newTrial(goodSecret(t), terminating)
		expectNoEvents(t, r.reconcile(t))
		if r.userData(t, "openshift-machine-api") != nil {
			t.Error("it was made")
		}
	})
	t.Run("a Secret that was made immutable is reported once, with what to do", func(t *testing.T) {
		old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: userdata.SecretName}, Data: map[string][]byte{userdata.SecretKey: []byte("old")}}
		invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, old.Name, nil)
		recorder := events.NewFakeRecorder(10)
		c := fake.NewClientBuilder().WithObjects(goodSecret(t), newNamespace("openshift-machine-api"), old).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return invalid
			},
		}).Build()
		r := &trial{Reconciler: newReconciler(c, recorder), recorder: recorder}
		recorded := r.reconcile(t)
		expectOneEvent(t, recorded, "UserDataUpdateFailed")
		if !strings.Contains(recorded[0], "Delete the Secret") {
			t.Errorf("event %q", recorded[0])
		}
		expectNoEvents(t, r.reconcile(t))
		secret := goodSecret(t) // another key
		if err := r.Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		expectOneEvent(t, r.reconcile(t), "UserDataUpdateFailed")
		expectNoEvents(t, r.reconcile(t))
	})
	t.Run("a correction that the cache does not show yet is refused by the API server, and reported once", func(t *testing.T) {
		old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: userdata.SecretName}, Data: map[string][]byte{userdata.SecretKey: []byte("old")}}
		recorder, patches := events.NewFakeRecorder(10), 0
		c := fake.NewClientBuilder().WithObjects(goodSecret(t), newNamespace("openshift-machine-api"), old).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(_ context.Context, _ client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
				if data, err := patch.Data(o); err != nil || !bytes.Contains(data, []byte(`"resourceVersion"`)) {
					t.Errorf("the patch is not for the version that was read: %s, error %v", data, err)
				}
				if patches++; patches > 1 {
					return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, o.GetName(), nil)
				}
				return nil
			},
		}).Build()
		r := &trial{Reconciler: newReconciler(c, recorder), recorder: recorder}
		expectOneEvent(t, r.reconcile(t), "UserDataUpdated")
		expectNoEvents(t, r.reconcile(t))
	})
}

func TestPrevious(t *testing.T) {
	both := func(previous []byte) *corev1.Secret {
		secret := goodSecret(t)
		secret.Data[SecretPreviousKey] = previous
		return secret
	}
	t.Run("a key that was replaced is read", func(t *testing.T) {
		key, found, err := Previous(t.Context(), fake.NewFakeClient(both(rsaKeys(t)["OpenSSH"])), namespace)
		if err != nil || !found || key.Signer() == nil {
			t.Errorf("found %v, error %v", found, err)
		}
	})
	for name, secret := range map[string]*corev1.Secret{"a Secret without one": goodSecret(t), "an empty one": both(nil)} {
		t.Run(name+" is none", func(t *testing.T) {
			if _, found, err := Previous(t.Context(), fake.NewFakeClient(secret), namespace); found || err != nil {
				t.Errorf("found %v, error %v", found, err)
			}
		})
	}
	t.Run("no Secret is none", func(t *testing.T) {
		if _, found, err := Previous(t.Context(), fake.NewFakeClient(), namespace); found || err != nil {
			t.Errorf("found %v, error %v", found, err)
		}
	})
	t.Run("one that cannot be used is reported, and the present key is used all the same", func(t *testing.T) {
		secret := both([]byte(canary))
		_, found, err := Previous(t.Context(), fake.NewFakeClient(secret), namespace)
		if found || err == nil || !strings.Contains(err.Error(), SecretPreviousKey) || containsSecret(err.Error(), secret) {
			t.Errorf("found %v, error %v", found, err)
		}
		r := newTrial(secret, newNamespace("openshift-machine-api"))
		recorded := r.reconcile(t)
		if len(recorded) != 2 || !strings.Contains(recorded[0], "PreviousPrivateKeyInvalid") || !strings.Contains(recorded[1],
			"UserDataCreated") || containsSecret(strings.Join(recorded, ""), secret) {
			t.Errorf("events %q", recorded)
		}
		expectNoEvents(t, r.reconcile(t))
	})
}
