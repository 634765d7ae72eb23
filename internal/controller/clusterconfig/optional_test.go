package clusterconfig

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// servingSecret returns the Secret as created by the service CA operator.
func (r *running) servingSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<33, 0)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "windows-machine-config-operator-tls"},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
		},
	}
}

// listUnsupportedNotes returns the notes of the events SettingUnsupported on the operator's Deployment.
func (r *running) listUnsupportedNotes(ctx context.Context) ([]string, error) {
	var events eventsv1.EventList
	err := r.admin.List(ctx, &events, client.InNamespace(r.namespace))
	var notes []string
	for _, e := range events.Items {
		if e.Reason == "SettingUnsupported" && e.Type == corev1.EventTypeWarning && e.Regarding.Name == deploymentName {
			notes = append(notes, e.Note)
		}
	}
	slices.Sort(notes)
	return notes, err
}

// L-03
func TestController_EachUnsupportedSettingReported(t *testing.T) {
	r := start(t)
	set := &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: "events-" + r.namespace},
		Spec: configv1.ImageDigestMirrorSetSpec{
			ImageDigestMirrors: []configv1.ImageDigestMirrors{{Source: "quay.io/a",
				Mirrors: []configv1.ImageMirror{"m.example.com/b", "m.example.com/a", "m.example.com/c"}}},
		}}
	r.createForTest(t, set)
	await := func(what string, want ...string) {
		t.Helper()
		var notes []string
		r.waitUntil(t, what, func(ctx context.Context) (ok bool, err error) {
			notes, err = r.listUnsupportedNotes(ctx)
			return len(notes) == len(want), err
		})
		for i := range want {
			if !strings.Contains(notes[i], want[i]) {
				t.Errorf("event %q does not say %q", notes[i], want[i])
			}
		}
	}
	await("both are reported", set.Name+", spec.imageDigestMirrors[0].mirrors[0]",
		set.Name+", spec.imageDigestMirrors[0].mirrors[2]")
	r.waitForReads(t)
	change := client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"imageDigestMirrors":[{"source":"gcr.io/z","mirrors":["m.example.com/b","m.example.com/a/z"]}]}}`))
	if err := r.admin.Patch(t.Context(), set, change); err != nil {
		t.Fatal(err)
	}
	await("another one at the same place is reported, too", "mirror for gcr.io/z", "quay.io/a", "quay.io/a")
	if facts, err := r.Current(); err != nil || len(facts.Registries.Hosts) == 0 {
		t.Errorf("got %+v, error %v", facts.Registries, err)
	}
}

// definitions are the kinds that an API server need not have.
var definitions = []string{
	"clusterimagepolicies.config.openshift.io", "imagedigestmirrorsets.config.openshift.io", "imagepolicies.config.openshift.io",
	"imagetagmirrorsets.config.openshift.io", "images.config.openshift.io", "proxies.config.openshift.io",
	"kubeletconfigs.machineconfiguration.openshift.io", "containerruntimeconfigs.machineconfiguration.openshift.io",
	"machineconfigurations.operator.openshift.io",
}

// withoutOptionalKinds removes the kinds from the API server, and restores the kinds after the test. The returned
// function restores them earlier.
func withoutOptionalKinds(t *testing.T) (restore func()) {
	t.Helper()
	admin, err := client.New(lab.Cluster(t).Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var removed []*unstructured.Unstructured
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	object := func(apiVersion, kind, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetName(name)
		return o
	}
	var instances []*unstructured.Unstructured
	for _, kind := range []string{"Proxy", "Image"} {
		instance := object("config.openshift.io/v1", kind, "cluster")
		must(admin.Get(t.Context(), client.ObjectKeyFromObject(instance), instance))
		instances = append(instances, instance)
	}
	for _, name := range definitions {
		definition := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
		must(admin.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
		removed = append(removed, definition)
		must(admin.Delete(t.Context(), definition.DeepCopy()))
	}
	pollUntil(t, "the kinds are gone", func(ctx context.Context) bool {
		return !slices.ContainsFunc(removed, func(o *unstructured.Unstructured) bool {
			return client.IgnoreNotFound(admin.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy())) != nil ||
				admin.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy()) == nil
		})
	})
	restored := false
	restore = func() {
		if restored {
			return
		}
		restored = true
		for i, o := range slices.Concat(removed, instances) {
			fresh := o.DeepCopy()
			fresh.SetResourceVersion("")
			fresh.SetUID("")
			if i < len(removed) {
				delete(fresh.Object, "status")
			}
			pollUntil(t, o.GetName()+" is made again", func(ctx context.Context) bool {
				err := admin.Create(ctx, fresh.DeepCopy())
				if !apierrors.IsAlreadyExists(err) {
					return err == nil
				}
				stored := fresh.DeepCopy() // a request may take effect and still return an error
				return admin.Get(ctx, client.ObjectKeyFromObject(stored), stored) == nil && stored.GetDeletionTimestamp() == nil
			})
		}
	}
	t.Cleanup(restore)
	return restore
}

func pollUntil(t *testing.T, what string, condition func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !condition(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("in 3 min not: %s", what)
		case <-ticker.C:
		}
	}
}

// annotateInfrastructure changes a field of an object that the Source reads, but not a field that it uses.
func (r *running) annotateInfrastructure(t *testing.T) {
	t.Helper()
	change := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"test":"`+time.Now().String()+`"}}}`))
	if err := r.admin.Patch(t.Context(), &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}},
		change); err != nil {
		t.Fatal(err)
	}
}

func TestController_OptionalKindsMayBeMissing(t *testing.T) {
	restore := withoutOptionalKinds(t)
	r := start(t)
	if facts, err := r.Current(); err != nil || len(facts.Registries.Hosts) > 0 {
		t.Fatalf("got %+v, error %v", facts.Registries, err)
	}
	restore()
	r.createForTest(t, &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: "later-" + r.namespace},
		Spec: configv1.ImageDigestMirrorSetSpec{
			ImageDigestMirrors: []configv1.ImageDigestMirrors{{Source: "quay.io",
				Mirrors: []configv1.ImageMirror{"m.example.com"}}},
		}})
	r.annotateInfrastructure(t)
	r.waitUntil(t, "a mirror of a kind that has come is known", func(context.Context) (bool, error) {
		facts, err := r.Current()
		return err == nil && len(facts.Registries.Hosts) == 1, nil
	})
}
