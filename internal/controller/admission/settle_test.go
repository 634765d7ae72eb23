package admission

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// bench is a Reconciler on an API server in memory, which can refuse objects of one name.
type bench struct {
	*Reconciler
	t           *testing.T
	recorder    *events.FakeRecorder
	refusedName string
	writes      int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, recorder: events.NewFakeRecorder(100)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wmco", UID: "namespace-uid"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(namespace).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			b.writes++
			if o.GetName() == b.refusedName {
				return errors.New("the expression does not compile")
			}
			return c.Patch(ctx, o, patch, options...)
		},
	}).Build()
	b.Reconciler = &Reconciler{Client: api, Live: api, Namespace: "wmco", Events: b.recorder}
	return b
}

func (b *bench) reconcile() (time.Duration, error) {
	b.t.Helper()
	result, err := b.Reconcile(b.t.Context(), ctrl.Request{})
	return result.RequeueAfter, err
}

func (b *bench) drainEvents() string {
	var recorded []string
	for len(b.recorder.Events) > 0 {
		recorded = append(recorded, <-b.recorder.Events)
	}
	return strings.Join(recorded, "\n")
}

func TestReconcile_PoliciesWrittenOnceIfUnchanged(t *testing.T) {
	b := newBench(t)
	if after, err := b.reconcile(); err != nil || after != checkInterval || b.writes != 2*len(Guards()) {
		t.Fatalf("%d writes, the next look is in %s, error %v", b.writes, after, err)
	}
	written := b.writes
	if after, err := b.reconcile(); err != nil || after != checkInterval || b.writes != written || b.drainEvents() != "" {
		t.Errorf("with nothing to do it wrote %d objects, and looks again in %s; error %v", b.writes-written, after, err)
	}
	t.Run("one that was deleted is made again, and that is reported", func(t *testing.T) {
		if err := b.Client.Delete(t.Context(), Guards()[0].Binding); err != nil {
			t.Fatal(err)
		}
		if after, err := b.reconcile(); err != nil || after != checkInterval || b.writes != written+1 {
			t.Fatalf("%d writes, the next look is in %s, error %v", b.writes-written, after, err)
		}
		if recorded := b.drainEvents(); !strings.Contains(recorded, "ValidatingAdmissionPolicyBinding "+CloudNodeManagers+" was deleted") {
			t.Errorf("told was %q", recorded)
		}
	})
	t.Run("one that another operator version has left is corrected without a report", func(t *testing.T) {
		policy := Guards()[1].Policy
		if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			t.Fatal(err)
		}
		policy.Spec.Validations = nil
		if err := b.Client.Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		b.correctObjects = nil // as after a restart
		written := b.writes
		if _, err := b.reconcile(); err != nil || b.writes != written+1 || b.drainEvents() != "" {
			t.Errorf("%d writes, error %v", b.writes-written, err)
		}
	})
}

func TestReconcile_RefusedPolicyBlocksNoOtherPolicy(t *testing.T) {
	b := newBench(t)
	b.refusedName = CloudNodeManagers
	for range 2 {
		if _, err := b.reconcile(); err == nil {
			t.Fatal("it is no error")
		}
	}
	for _, g := range Guards() {
		err := b.Live.Get(t.Context(), client.ObjectKeyFromObject(g.Policy), g.Policy.DeepCopy())
		if exists := err == nil; exists == (g.Policy.Name == b.refusedName) {
			t.Errorf("policy %s: %v", g.Policy.Name, err)
		}
	}
	if recorded := b.drainEvents(); strings.Count(recorded, "AdmissionPoliciesFailed") != 1 || !strings.Contains(recorded, "does not compile") ||
		!strings.Contains(recorded, CloudNodeManagers) {
		t.Errorf("told was %q", recorded)
	}
	b.refusedName = ""
	for range 3 {
		if _, err := b.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	if recorded := b.drainEvents(); !strings.Contains(recorded, "AdmissionPoliciesInstalled") {
		t.Errorf("told was %q", recorded)
	}
}

//
func TestReconcile_CreatesNothingWithoutNamespace(t *testing.T) {
	b := newBench(t)
	if err := b.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wmco"}}); err != nil {
		t.Fatal(err)
	}
	if after, err := b.reconcile(); err != nil || after != 0 || b.writes > 0 {
		t.Errorf("it wrote %d objects, and looks again in %s; error %v", b.writes, after, err)
	}
}
