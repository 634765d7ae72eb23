package legacycleanup_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/legacycleanup"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

const (
	currentVersion = "12.0.0-abcdefg"
	legacyVersion  = "10.19.0-1a2b3c4"
)

// fixture is a real API server with the leftovers of a legacy operator.
type fixture struct {
	*legacycleanup.Reconciler
	t         *testing.T
	admin     client.Client
	leftovers []client.Object
	recorder  *events.FakeRecorder
	requests  int // of the Reconciler
	deletions []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := lab.Cluster(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	admin, err := client.NewWithWatch(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, admin: admin, recorder: events.NewFakeRecorder(100)}
	namespace := clustertest.Namespace(t, c)
	f.leftovers = testenv.LegacyClusterObjects(namespace, legacyVersion)
	for _, object := range f.leftovers {
		f.createObject(object)
	}
	counted := interceptor.NewClient(admin, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			f.requests++
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			f.requests++
			if _, ok := list.(*v1alpha1.WindowsInstanceList); ok {
				return nil // this cluster lacks the definition
			}
			return c.List(ctx, list, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			f.deletions = append(f.deletions, o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName())
			return c.Delete(ctx, o, options...)
		},
	})
	f.Reconciler = &legacycleanup.Reconciler{Client: counted, Live: counted, Namespace: namespace,
		Version: currentVersion, Events: f.recorder}
	return f
}

func (f *fixture) createObject(object client.Object) {
	f.t.Helper()
	if err := f.admin.Create(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := f.admin.Delete(context.WithoutCancel(f.t.Context()), object); client.IgnoreNotFound(err) != nil {
			f.t.Error(err)
		}
	})
}

// createNode creates a Windows Node with annotations.
func (f *fixture) createNode(name string, annotations map[string]string) *corev1.Node {
	f.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelOSStable: "windows"}, Annotations: annotations}}
	f.createObject(node)
	return node
}

func (f *fixture) reconcileOnce() {
	f.t.Helper()
	if _, err := f.Reconcile(f.t.Context(), ctrl.Request{}); err != nil {
		f.t.Fatal(err)
	}
}

// remainingLeftovers returns the leftovers that still exist.
func (f *fixture) remainingLeftovers() []string {
	f.t.Helper()
	var names []string
	for _, object := range f.leftovers {
		if f.objectExists(object) {
			names = append(names, object.GetName())
		}
	}
	return names
}

func (f *fixture) objectExists(object client.Object) bool {
	f.t.Helper()
	found, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		f.t.Fatalf("%T is no object", object)
	}
	err := f.admin.Get(f.t.Context(), client.ObjectKeyFromObject(object), found)
	if client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}
	return err == nil && found.GetUID() == object.GetUID()
}

//
func TestReconcile_LeftoversDeletedAfterLastLegacyNode(t *testing.T) {
	f := newFixture(t)
	bound := map[string]string{v1alpha1.AnnotationInstance: "entry", v1alpha1.AnnotationVersion: legacyVersion}
	waiting := f.createNode("waiting", bound)
	untouched := f.createNode("untouched", map[string]string{v1alpha1.AnnotationPubKeyHash: "abc"})
	f.createNode("joining", map[string]string{v1alpha1.AnnotationInstance: "new"})
	f.createNode("of-somebody-else", nil)

	t.Run("all stays while a node was not taken over", func(t *testing.T) {
		f.reconcileOnce()
		if len(f.deletions) != 0 || len(f.remainingLeftovers()) != len(f.leftovers) {
			t.Errorf("deleted %v", f.deletions)
		}
	})
	if err := f.admin.Delete(t.Context(), untouched); err != nil {
		t.Fatal(err)
	}
	t.Run("and while one was taken over and not brought up to date", func(t *testing.T) {
		f.reconcileOnce()
		if len(f.deletions) != 0 {
			t.Errorf("deleted %v", f.deletions)
		}
	})

	patch := client.MergeFrom(waiting.DeepCopy())
	waiting.Annotations[v1alpha1.AnnotationVersion] = currentVersion
	if err := f.admin.Patch(t.Context(), waiting, patch); err != nil {
		t.Fatal(err)
	}
	users := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "windows-instances"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "windows-services-of-mine"}, Data: map[string]string{"services": "a list of ours"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "windows-services-notes"}, Data: map[string]string{"a": "b"}, Immutable: ptr.To(true)},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "cloud-private-key"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "windows-machine-config-operator"}},
	}
	for _, object := range users {
		f.createObject(object)
	}
	t.Run("all goes when the last one was brought up to date, rights first", func(t *testing.T) {
		f.reconcileOnce()
		if left := f.remainingLeftovers(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if len(f.deletions) != len(f.leftovers) || !strings.HasPrefix(f.deletions[0], "ClusterRoleBinding ") {
			t.Errorf("deleted %v", f.deletions)
		}
	})
	t.Run("what users have stays", func(t *testing.T) {
		for _, object := range users {
			if !f.objectExists(object) {
				t.Errorf("%T %s is gone", object, object.GetName())
			}
		}
	})
	t.Run("each is reported, with what it was", func(t *testing.T) {
		var recorded []string
		for len(f.recorder.Events) > 0 {
			recorded = append(recorded, <-f.recorder.Events)
		}
		if len(recorded) != len(f.leftovers) || !slices.ContainsFunc(recorded, func(event string) bool {
			return strings.Contains(event, "LegacyObjectDeleted") && strings.Contains(event, "Secret windows-instance-config-daemon") && strings.Contains(event, "token")
		}) {
			t.Errorf("told %q", recorded)
		}
	})
	t.Run("after that, nothing is asked of the API server but whether an older node is there", func(t *testing.T) {
		f.requests, f.deletions = 0, nil
		f.reconcileOnce()
		if f.requests > 1 || len(f.deletions) != 0 {
			t.Errorf("%d requests, deleted %v", f.requests, f.deletions)
		}
	})
}

// the legacy operator was uninstalled, with or without its nodes.
func TestReconcile_LeftoversDeletedWithoutNodes(t *testing.T) {
	f := newFixture(t)
	for _, object := range f.leftovers[:4] {
		// Deleting the account also deletes the token.
		if err := f.admin.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	f.reconcileOnce()
	if left := f.remainingLeftovers(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestReconcile_HostKeysKeptUntilPinned(t *testing.T) {
	f := newFixture(t)
	noted := &corev1.ConfigMap{}
	if err := f.admin.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "windows-ssh-host-keys"},
		noted); err != nil {
		t.Fatal(err)
	}
	noted.Data = map[string]string{"10.0.0.8": "AAAA"}
	if err := f.admin.Update(t.Context(), noted); err != nil {
		t.Fatal(err)
	}
	listed := v1alpha1.WindowsInstance{Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.8"}}
	plain, ok := f.Live.(client.WithWatch)
	if !ok {
		t.Fatal("the client does not watch")
	}
	f.Live = interceptor.NewClient(plain, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if instances, ok := list.(*v1alpha1.WindowsInstanceList); ok {
				instances.Items = []v1alpha1.WindowsInstance{listed}
				return nil
			}
			return c.List(ctx, list, options...)
		},
	})
	f.reconcileOnce()
	if left := f.remainingLeftovers(); !slices.Equal(left, []string{"windows-ssh-host-keys"}) {
		t.Errorf("left: %v", left)
	}
	listed.Status.HostKey = &v1alpha1.HostKey{Key: "AAAA"}
	f.reconcileOnce()
	if left := f.remainingLeftovers(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
