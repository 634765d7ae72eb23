package clusterconfig

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/internal/cluster"
)

// fixture is a Source of a cluster with Secrets that the test creates and deletes.
type fixture struct {
	*Source
	t       *testing.T
	client  client.WithWatch
	clock   *testingclock.FakePassiveClock
	changed chan event.GenericEvent
	// secretErr is the error of each request for a Secret, and unserved the error of each list of mirrors.
	secretErr, mirrorListErr error
	// requested counts the requests for each object.
	requested map[objectKey]int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, cluster.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	a := &fixture{t: t, clock: testingclock.NewFakePassiveClock(time.Unix(1<<30, 0))}
	a.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(orderlyCluster(t)...).Build()
	a.restartOperator()
	return a
}

// restartOperator starts the operator, which reads the cluster.
func (a *fixture) restartOperator() {
	a.t.Helper()
	a.start()
	a.readAndExpect(1)
}

// start starts the operator before its first read.
func (a *fixture) start() {
	reader := interceptor.NewClient(a.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			a.requested[objectKey{reflect.TypeOf(object), key}]++
			if _, ok := object.(*corev1.Secret); ok && a.secretErr != nil {
				return a.secretErr
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*configv1.ImageDigestMirrorSetList); ok && a.mirrorListErr != nil {
				return a.mirrorListErr
			}
			return c.List(ctx, list, options...)
		},
	})
	a.changed, a.requested = make(chan event.GenericEvent, 10), map[objectKey]int{}
	a.Source = NewSource(reader, namespace)
	a.listeners = append(a.listeners, a.changed)
	a.Source.clock = a.clock
}

// readAndExpect makes the Source read the cluster, expects the number of change events, and returns the delay before
// the next read.
func (a *fixture) readAndExpect(changes int) time.Duration {
	a.t.Helper()
	result, err := a.Reconcile(a.t.Context(), ctrl.Request{})
	if err != nil {
		a.t.Fatal(err)
	}
	if got := len(a.changed); got != changes {
		a.t.Errorf("%d changes were told, want %d", got, changes)
	}
	for len(a.changed) > 0 {
		<-a.changed
	}
	return result.RequeueAfter
}

// readAfter advances the clock and then makes the Source read the cluster.
func (a *fixture) readAfter(passed time.Duration, changes int) time.Duration {
	a.t.Helper()
	a.clock.SetTime(a.clock.Now().Add(passed))
	return a.readAndExpect(changes)
}

func (a *fixture) requireNoError(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *fixture) createSecret(secret *corev1.Secret) {
	a.t.Helper()
	a.requireNoError(a.client.Create(a.t.Context(), secret.DeepCopy()))
}

func (a *fixture) deleteSecret(secret *corev1.Secret) {
	a.t.Helper()
	a.requireNoError(a.client.Delete(a.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace,
		Name: secret.Name}}))
}

// expectCertificate checks the desired certificate of the exporters; nil means none.
func (a *fixture) expectCertificate(secret *corev1.Secret) {
	a.t.Helper()
	facts, err := a.Current()
	a.requireNoError(err)
	want := ""
	if secret != nil {
		want = string(secret.Data[corev1.TLSCertKey])
	}
	if facts.MetricsServing.Certificate != want {
		a.t.Errorf("the exporters' certificate is %q, want %q", facts.MetricsServing.Certificate, want)
	}
}

// expectCredentials checks the desired credentials of the nodes.
func (a *fixture) expectCredentials(registries ...string) {
	a.t.Helper()
	facts, err := a.Current()
	a.requireNoError(err)
	var got []string
	for _, credential := range facts.Registries.Credentials {
		got = append(got, credential.Registry)
	}
	if len(got) != len(registries) || len(got) > 0 && got[0] != registries[0] {
		a.t.Errorf("credentials are for %q, want %q", got, registries)
	}
}

func servingCertificate(t *testing.T) *corev1.Secret {
	t.Helper()
	return (&running{namespace: namespace}).servingSecret(t)
}

func pullSecretFor(registry string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.PullSecret.Namespace, Name: cluster.PullSecret.Name},
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + registry +
			`":{"username":"user","password":"password"}}}`)},
	}
}

// L-02
func TestAbsence_BriefSecretAbsenceChangesNoNode(t *testing.T) {
	t.Run("deleted and made again, it is one change", func(t *testing.T) {
		a, first, second := newFixture(t), servingCertificate(t), servingCertificate(t)
		a.createSecret(first)
		a.createSecret(pullSecretFor("one.example.com"))
		if next := a.readAndExpect(1); next != rereadInterval {
			t.Errorf("it reads again in %s", next)
		}
		a.deleteSecret(first)
		a.deleteSecret(pullSecretFor("one.example.com"))
		if next := a.readAndExpect(0); next != absenceGracePeriod {
			t.Errorf("it reads again in %s", next)
		}
		a.expectCertificate(first)
		a.expectCredentials("one.example.com")
		if next := a.readAfter(absenceGracePeriod/4, 0); next != absenceGracePeriod*3/4 {
			t.Errorf("it reads again in %s", next)
		}
		a.createSecret(second)
		a.createSecret(pullSecretFor("two.example.com"))
		if next := a.readAndExpect(1); next != rereadInterval {
			t.Errorf("it reads again in %s", next)
		}
		a.expectCertificate(second)
		a.expectCredentials("two.example.com")
		a.readAfter(time.Hour, 0)
	})
	t.Run("deleted and made again as it was, it is none", func(t *testing.T) {
		a, secret := newFixture(t), servingCertificate(t)
		a.createSecret(secret)
		a.readAndExpect(1)
		a.deleteSecret(secret)
		a.readAndExpect(0)
		a.createSecret(secret)
		a.readAndExpect(0)
	})
	t.Run("deleted for good, it counts after a while", func(t *testing.T) {
		a, secret := newFixture(t), servingCertificate(t)
		a.createSecret(secret)
		a.createSecret(pullSecretFor("one.example.com"))
		a.readAndExpect(1)
		a.deleteSecret(secret)
		a.readAndExpect(0)
		a.readAfter(absenceGracePeriod/2, 0)
		a.deleteSecret(pullSecretFor("one.example.com"))
		if next := a.readAndExpect(0); next != absenceGracePeriod {
			t.Errorf("it reads again in %s", next)
		}
		if next := a.readAfter(absenceGracePeriod/2, 0); next != absenceGracePeriod/2 {
			t.Errorf("it reads again in %s", next)
		}
		a.expectCertificate(secret)
		a.expectCredentials("one.example.com")
		if next := a.readAfter(absenceGracePeriod/2, 1); next != rereadInterval {
			t.Errorf("it reads again in %s", next)
		}
		a.expectCertificate(nil)
		a.expectCredentials()
		a.readAfter(time.Hour, 0)
	})
	t.Run("deleted twice, each absence is one of its own", func(t *testing.T) {
		a, secret := newFixture(t), servingCertificate(t)
		a.createSecret(secret)
		a.readAndExpect(1)
		for range 3 {
			a.deleteSecret(secret)
			a.readAndExpect(0)
			a.readAfter(absenceGracePeriod*3/4, 0)
			a.createSecret(secret)
			a.readAndExpect(0)
		}
		a.expectCertificate(secret)
	})
	t.Run("all else waits for as long", func(t *testing.T) {
		a := newFixture(t)
		a.createSecret(pullSecretFor("mirror.example.com"))
		a.readAndExpect(1)
		a.deleteSecret(pullSecretFor("mirror.example.com"))
		a.requireNoError(a.client.Create(t.Context(), &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: configv1.ImageDigestMirrorSetSpec{
			ImageDigestMirrors: []configv1.ImageDigestMirrors{{Source: "quay.io", Mirrors: []configv1.ImageMirror{"mirror.example.com"}}},
		}}))
		a.readAndExpect(0)
		a.createSecret(pullSecretFor("mirror.example.com"))
		a.readAndExpect(1)
		facts, err := a.Current()
		a.requireNoError(err)
		if hosts := facts.Registries.Hosts; len(hosts) != 1 || len(hosts[0].Mirrors) != 1 || hosts[0].Mirrors[0].Authorization == "" {
			t.Errorf("a new mirror comes without its credentials: %+v", facts.Registries)
		}
	})
	t.Run("a fault is reported at once", func(t *testing.T) {
		a, secret := newFixture(t), servingCertificate(t)
		a.createSecret(secret)
		a.readAndExpect(1)
		a.deleteSecret(secret)
		a.requireNoError(a.client.Delete(t.Context(), &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}))
		a.readAndExpect(1)
		if _, err := a.Current(); err == nil {
			t.Error("the cluster has no Infrastructure, and the operator goes on")
		}
	})
}

// expectProxy checks the desired proxy of the nodes; empty means none.
func (a *fixture) expectProxy(want string) {
	a.t.Helper()
	facts, err := a.Current()
	a.requireNoError(err)
	if got := string(facts.Proxy.HTTPS); got != want {
		a.t.Errorf("the proxy is %q, want %q", got, want)
	}
}

// L-01
func TestAbsence_BriefProxyAbsenceChangesNoNode(t *testing.T) {
	const address = "http://proxy.example.com:3128"
	proxy := func() *configv1.Proxy {
		return &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: configv1.ProxyStatus{HTTPSProxy: address}}
	}
	a := newFixture(t)
	a.requireNoError(client.IgnoreNotFound(a.client.Delete(t.Context(), proxy())))
	a.requireNoError(a.client.Create(t.Context(), proxy()))
	a.readAndExpect(1)
	a.expectProxy(address)
	t.Run("deleted and made again, it changes nothing", func(t *testing.T) {
		a.requireNoError(a.client.Delete(t.Context(), proxy()))
		if next := a.readAndExpect(0); next != absenceGracePeriod {
			t.Errorf("it reads again in %s", next)
		}
		a.expectProxy(address)
		a.requireNoError(a.client.Create(t.Context(), proxy()))
		a.readAfter(absenceGracePeriod-time.Second, 0)
		a.readAfter(time.Hour, 0)
	})
	t.Run("deleted for good, it counts after a while", func(t *testing.T) {
		a.requireNoError(a.client.Delete(t.Context(), proxy()))
		a.readAndExpect(0)
		a.readAfter(absenceGracePeriod, 1)
		a.expectProxy("")
	})
}

// L-03
func TestAbsence_BrieflyUnservedMirrorsChangeNoNode(t *testing.T) {
	for name, unserved := range map[string]error{
		"a general 404": apierrors.NewGenericServerResponse(http.StatusNotFound, "list",
			schema.GroupResource{Group: configv1.GroupName, Resource: "imagedigestmirrorsets"}, "", "404 page not found", 0, true),
		"a kind that discovery lacks": &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: configv1.GroupName,
			Kind: "ImageDigestMirrorSet"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newFixture(t)
			a.createMirrorSet("a", "quay.io")
			a.readAndExpect(1)
			a.mirrorListErr = unserved
			if next := a.readAndExpect(0); next != absenceGracePeriod {
				t.Errorf("it reads again in %s", next)
			}
			a.mirrorListErr = nil
			a.readAfter(absenceGracePeriod/2, 0)
			a.mirrorListErr = unserved
			a.readAndExpect(0)
			a.readAfter(absenceGracePeriod, 1)
			if facts, err := a.Current(); err != nil || len(facts.Registries.Hosts) > 0 {
				t.Errorf("mirrors of a kind that is gone for good are still %+v, error %v", facts.Registries.Hosts, err)
			}
		})
	}
}

func TestAbsence_EndsIfObjectExistsDuringFault(t *testing.T) {
	const address = "http://proxy.example.com:3128"
	proxy := func() *configv1.Proxy {
		return &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: configv1.ProxyStatus{HTTPSProxy: address}}
	}
	a := newFixture(t)
	a.requireNoError(client.IgnoreNotFound(a.client.Delete(t.Context(), proxy())))
	a.requireNoError(a.client.Create(t.Context(), proxy()))
	a.readAndExpect(1)
	a.requireNoError(a.client.Delete(t.Context(), proxy()))
	a.readAndExpect(0)
	a.requireNoError(a.client.Create(t.Context(), proxy()))
	garbage := pullSecretFor(`"`)
	a.createSecret(garbage)
	a.readAndExpect(1)
	a.deleteSecret(garbage)
	a.requireNoError(a.client.Delete(t.Context(), proxy()))
	a.readAfter(absenceGracePeriod+time.Second, 1)
	a.expectProxy(address)
	a.readAfter(absenceGracePeriod, 1)
	a.expectProxy("")
}

func TestAbsence_AppliesAtOnceWithoutGoodRead(t *testing.T) {
	t.Run("when the operator was started during it", func(t *testing.T) {
		a, secret := newFixture(t), servingCertificate(t)
		a.createSecret(secret)
		a.readAndExpect(1)
		a.deleteSecret(secret)
		a.readAndExpect(0)
		a.restartOperator()
		a.expectCertificate(nil)
	})
	t.Run("when the Secret was never one that can be used", func(t *testing.T) {
		a, garbage := newFixture(t), servingCertificate(t)
		garbage.Data[corev1.TLSPrivateKeyKey] = nil
		a.createSecret(garbage)
		a.readAndExpect(1)
		a.deleteSecret(garbage)
		if next := a.readAndExpect(1); next != rereadInterval {
			t.Errorf("it reads again in %s", next)
		}
		a.expectCertificate(nil)
	})
}

// The operator still follows the rest of the cluster, and no exporter falls back to plain HTTP.
func TestReconcile_UnusableCertificateIsNotice(t *testing.T) {
	for name, data := range map[string]map[string][]byte{
		"an empty Secret": nil,
		"no key":          {corev1.TLSCertKey: servingCertificate(t).Data[corev1.TLSCertKey]},
		"another's key": {corev1.TLSCertKey: servingCertificate(t).Data[corev1.TLSCertKey],
			corev1.TLSPrivateKeyKey: servingCertificate(t).Data[corev1.TLSPrivateKeyKey]},
	} {
		t.Run(name, func(t *testing.T) {
			a, good := newFixture(t), servingCertificate(t)
			a.createSecret(good)
			a.readAndExpect(1)
			bad := good.DeepCopy()
			bad.Data = data
			a.requireNoError(a.client.Update(t.Context(), bad))
			a.readAndExpect(0)
			a.expectCertificate(good)
			notices := a.good.notices
			if len(notices) != 1 || notices[0].Object != "Secret "+client.ObjectKeyFromObject(good).String() ||
				!strings.Contains(notices[0].Message, "keep the certificates") {
				t.Errorf("the notices are %v", notices)
			}
			a.readAfter(10*absenceGracePeriod, 0)
			a.expectCertificate(good)
			a.createSecret(pullSecretFor("registry.example.com"))
			a.readAndExpect(1)
			a.expectCredentials("registry.example.com")
			a.expectCertificate(good)
			next := servingCertificate(t)
			a.requireNoError(a.client.Update(t.Context(), next))
			a.readAndExpect(1)
			a.expectCertificate(next)
			if notices := a.good.notices; len(notices) > 0 {
				t.Errorf("afterwards the notices are %v", notices)
			}
		})
	}
}

func TestAbsence_SecretKeptFromLastGoodRead(t *testing.T) {
	t.Run("when it was garbage before it was deleted", func(t *testing.T) {
		a, secret, garbage := newFixture(t), servingCertificate(t), servingCertificate(t)
		garbage.Data[corev1.TLSPrivateKeyKey] = nil
		a.createSecret(secret)
		a.readAndExpect(1)
		a.deleteSecret(secret)
		a.createSecret(garbage)
		a.readAndExpect(0)
		a.deleteSecret(garbage)
		a.readAndExpect(0)
		a.expectCertificate(secret)
		a.readAfter(absenceGracePeriod, 1)
		a.expectCertificate(nil)
	})
	t.Run("when another object was wrong meanwhile", func(t *testing.T) {
		a, secret := newFixture(t), servingCertificate(t)
		a.createSecret(secret)
		a.readAndExpect(1)
		garbage := pullSecretFor(`"`)
		a.createSecret(garbage)
		a.deleteSecret(secret)
		a.readAndExpect(1)
		a.deleteSecret(garbage)
		a.readAndExpect(1)
		a.expectCertificate(secret)
	})
	t.Run("when a request failed", func(t *testing.T) {
		a, secret := newFixture(t), servingCertificate(t)
		a.createSecret(secret)
		a.readAndExpect(1)
		a.deleteSecret(secret)
		a.readAndExpect(0)
		a.secretErr = errors.New("connection refused")
		a.clock.SetTime(a.clock.Now().Add(2 * time.Minute))
		if _, err := a.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, a.secretErr) {
			t.Errorf("error is %v", err)
		}
		a.expectCertificate(secret)
		a.secretErr = nil
		a.readAndExpect(1)
		a.expectCertificate(nil)
	})
}

func TestReconcile_RequestsEachObjectOnce(t *testing.T) {
	a := newFixture(t)
	if len(a.requested) < 8 {
		t.Errorf("only %d objects were requested", len(a.requested))
	}
	for key, times := range a.requested {
		if times != 1 {
			t.Errorf("%s was requested %d times", key, times)
		}
	}
	a.readAndExpect(0)
	for key, times := range a.requested {
		if times != 2 {
			t.Errorf("%s was requested %d times by two reads", key, times)
		}
	}
}
