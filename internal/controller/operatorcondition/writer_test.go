package operatorcondition

import (
	"context"
	"os"
	"strings"
	"testing"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

const name = "windows-machine-config-operator.v12.0.0"

// fixture is an installation by OLM, on a real API server.
type fixture struct {
	client    client.WithWatch
	namespace string
	// updates is the number of attempted writes.
	updates int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := lab.Cluster(t)
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	plain, err := client.NewWithWatch(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{namespace: clustertest.Namespace(t, c)}
	f.client = interceptor.NewClient(plain, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			f.updates++
			return c.Update(ctx, o, options...)
		},
	})
	object := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	if err := f.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) newWriter() *Writer { return NewWriter(f.client, f.client, f.namespace, name) }

func (f *fixture) setCondition(t *testing.T, conditionType string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	if err := f.newWriter().Set(t.Context(), metav1.Condition{Type: conditionType, Status: status, Reason: reason,
		Message: message}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) getConditions(t *testing.T) []metav1.Condition {
	t.Helper()
	object := &operatorsv2.OperatorCondition{}
	if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
	return object.Spec.Conditions
}

func TestWriter_SetsConditionForOLM(t *testing.T) {
	t.Run("a condition is written where OLM reads it", func(t *testing.T) {
		f := newFixture(t)
		f.setCondition(t, ClusterSupported, metav1.ConditionFalse, "NetworkUnsupported", "The cluster's network is \"OpenShiftSDN\".")
		got := meta.FindStatusCondition(f.getConditions(t), ClusterSupported)
		if got == nil || got.Status != metav1.ConditionFalse || got.Reason != "NetworkUnsupported" || got.LastTransitionTime.IsZero() {
			t.Errorf("it is %+v", got)
		}
	})
	t.Run("the same again is not written", func(t *testing.T) {
		f := newFixture(t)
		for range 3 {
			f.setCondition(t, ClusterSupported, metav1.ConditionTrue, "Succeeded", "All is well.")
		}
		if f.updates != 1 {
			t.Errorf("%d writes", f.updates)
		}
	})
	t.Run("a new message is, and is no transition", func(t *testing.T) {
		f := newFixture(t)
		f.setCondition(t, ClusterSupported, metav1.ConditionFalse, "A", "one")
		before := f.getConditions(t)[0].LastTransitionTime
		f.setCondition(t, ClusterSupported, metav1.ConditionFalse, "A", "two")
		got := f.getConditions(t)
		if len(got) != 1 || got[0].Message != "two" || !got[0].LastTransitionTime.Equal(&before) {
			t.Errorf("they are %+v", got)
		}
	})
	t.Run("conditions of other types stay", func(t *testing.T) {
		f := newFixture(t)
		f.setCondition(t, operatorsv2.Upgradeable, metav1.ConditionTrue, "Idle", "")
		f.setCondition(t, ClusterSupported, metav1.ConditionTrue, "Succeeded", "All is well.")
		f.setCondition(t, operatorsv2.Upgradeable, metav1.ConditionFalse, "Busy", "")
		got := f.getConditions(t)
		if len(got) != 2 || !meta.IsStatusConditionTrue(got, ClusterSupported) || !meta.IsStatusConditionFalse(got, operatorsv2.Upgradeable) {
			t.Errorf("they are %+v", got)
		}
	})
	t.Run("a write in between is not lost", func(t *testing.T) {
		f := newFixture(t)
		raced := false
		racing := interceptor.NewClient(f.client, interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
				if !raced {
					raced = true
					f.setCondition(t, operatorsv2.Upgradeable, metav1.ConditionFalse, "Busy", "")
				}
				return c.Update(ctx, o, options...)
			},
		})
		w := NewWriter(racing, racing, f.namespace, name)
		if err := w.Set(t.Context(), metav1.Condition{Type: ClusterSupported, Status: metav1.ConditionTrue, Reason: "Succeeded"}); err != nil {
			t.Fatal(err)
		}
		if got := f.getConditions(t); len(got) != 2 {
			t.Errorf("they are %+v", got)
		}
	})
	t.Run("without OLM nothing is written", func(t *testing.T) {
		if err := NewWriter(nil, nil, "any", "").Set(t.Context(), metav1.Condition{Type: ClusterSupported}); err != nil {
			t.Error(err)
		}
	})
	t.Run("an object that is not there is named, and where its name comes from", func(t *testing.T) {
		f := newFixture(t)
		err := NewWriter(f.client, f.client, f.namespace, "gone").Set(t.Context(), metav1.Condition{Type: ClusterSupported, Status: metav1.ConditionTrue, Reason: "Succeeded"})
		if err == nil || !strings.Contains(err.Error(), f.namespace+"/gone") || !strings.Contains(err.Error(), NameVariable) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("a condition without a reason is refused before the API server does", func(t *testing.T) {
		if err := NewWriter(nil, nil, "any", "any").Set(t.Context(), metav1.Condition{Type: ClusterSupported}); err == nil {
			t.Error("it was written")
		}
	})
}
