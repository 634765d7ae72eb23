package sshkeysecret

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// trial is a Reconciler with its events and log.
type trial struct {
	Reconciler
	recorder *events.FakeRecorder
	logged   strings.Builder
}

func newTrial(objects ...client.Object) *trial {
	recorder := events.NewFakeRecorder(10)
	// An object that the fake client applies has no resourceVersion.
	c := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if patch.Type() == types.ApplyPatchType {
				return c.Create(ctx, o)
			}
			return c.Patch(ctx, o, patch, options...)
		},
	}).Build()
	return &trial{
		Reconciler: newReconciler(c, recorder),
		recorder:   recorder,
	}
}

func newReconciler(c client.Client, recorder events.EventRecorder) Reconciler {
	return Reconciler{
		Client: c, Namespace: namespace, Events: recorder, Cluster: platform("AWS"),
		exists: func(ctx context.Context, name string) (bool, error) { return namespaceExists(ctx, c, name) },
	}
}

// platform is a cluster with only a known platform.
type platform string

func (p platform) Current() (nodespec.Cluster, error) {
	if p == "" {
		return nodespec.Cluster{}, errors.New("not read yet")
	}
	return nodespec.Cluster{Platform: string(p)}, nil
}

// reconcile reconciles the Secret once and returns the emitted events.
func (r *trial) reconcile(t *testing.T) []string {
	t.Helper()
	logger := funcr.New(func(prefix, args string) { fmt.Fprintln(&r.logged, prefix, args) }, funcr.Options{Verbosity: 10})
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: SecretName}}
	result, err := r.Reconcile(log.IntoContext(t.Context(), logger), request)
	if err != nil || !result.IsZero() {
		t.Fatalf("result %+v, error %v", result, err)
	}
	var recorded []string
	for len(r.recorder.Events) > 0 {
		recorded = append(recorded, <-r.recorder.Events)
	}
	return recorded
}

//
func TestReconcile_UnusableKeyReported(t *testing.T) {
	for name, test := range unusableSecrets(t) {
		t.Run("a Secret "+name, func(t *testing.T) {
			r := newTrial(test.secret)
			recorded := r.reconcile(t)
			if len(recorded) != 1 {
				t.Fatalf("%d events: %q", len(recorded), recorded)
			}
			for _, want := range []string{corev1.EventTypeWarning, "PrivateKeyInvalid", test.message,
				"oc create secret generic", SecretKey} {
				if !strings.Contains(recorded[0], want) {
					t.Errorf("event %q does not say %q", recorded[0], want)
				}
			}
			if containsSecret(recorded[0], test.secret) || containsSecret(r.logged.String(), test.secret) {
				t.Errorf("what the Secret holds is repeated: event %q, log %q", recorded[0], r.logged.String())
			}
			if again := r.reconcile(t); len(again) > 0 {
				t.Errorf("the same Secret is reported again: %q", again)
			}
		})
	}
	t.Run("a Secret that is changed is looked at again, and needs no restart", func(t *testing.T) {
		secret := secretWith(SecretKey, []byte(canary))
		r := newTrial(secret)
		if recorded := r.reconcile(t); len(recorded) != 1 {
			t.Fatalf("events %q", recorded)
		}
		secret.Data[SecretKey] = []byte(canary + canary)
		if err := r.Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if recorded := r.reconcile(t); len(recorded) != 1 {
			t.Errorf("another wrong key: events %q", recorded)
		}
		secret.Data[SecretKey] = rsaKeys(t)["PKCS#1"]
		if err := r.Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if recorded := r.reconcile(t); len(recorded) > 0 || !strings.Contains(r.logged.String(), "SSH private key read") {
			t.Errorf("a good key: events %q, log %q", recorded, r.logged.String())
		}
		if containsSecret(r.logged.String(), secret) {
			t.Errorf("the log holds the key: %q", r.logged.String())
		}
	})
	//
	t.Run("a Secret that is not there is nothing to tell of here: the instances wait for it", func(t *testing.T) {
		if recorded := newTrial().reconcile(t); len(recorded) > 0 {
			t.Errorf("events %q", recorded)
		}
	})
	t.Run("a request that fails is an error, so that it is tried again", func(t *testing.T) {
		failure := errors.New("connection refused")
		r := newReconciler(newFailingClient(failure), events.NewFakeRecorder(1))
		if _, err := r.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, failure) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestIsRelevant_OnlyKeyAndUserDataSecrets(t *testing.T) {
	r := Reconciler{Namespace: namespace}
	for name, test := range map[string]struct {
		namespace, name string
		want            bool
	}{
		"the private key":                       {namespace, SecretName, true},
		"a Secret of that name elsewhere":       {"openshift-machine-api", SecretName, false},
		"the user data":                         {"openshift-machine-api", "windows-user-data", true},
		"the user data for Cluster API":         {"openshift-cluster-api", "windows-user-data", true},
		"a Secret of that name in another":      {namespace, "windows-user-data", false},
		"a Secret whose name begins the same":   {namespace, SecretName + "-old", false},
		"the user data of other Windows images": {"openshift-machine-api", "windows-user-data-gpu", false},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: test.name}}
			if got := r.IsRelevant(secret); got != test.want {
				t.Errorf("it is %v", got)
			}
		})
	}
}
