package admission_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/controller/admission"
)

func TestThePoliciesAreInForceAndStaySo(t *testing.T) {
	f := newFixture(t, "")
	ctx := t.Context()

	t.Run("the API server finds nothing wrong with their expressions", func(t *testing.T) {
		f := f.within(t)
		for _, name := range policies() {
			policy := policyOf(name)
			f.await("policy "+name+" is checked", func(ctx context.Context) (bool, error) {
				err := f.admin.Get(ctx, client.ObjectKeyFromObject(policy), policy)
				return policy.Status.ObservedGeneration == policy.Generation && policy.Status.TypeChecking != nil, err
			})
			for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("policy %s, %s: %s", name, warning.FieldRef, warning.Warning)
			}
		}
	})
	t.Run("a policy that is deleted is made again", func(t *testing.T) {
		f := f.within(t)
		before, after := policyOf(admission.Operator), policyOf(admission.Operator)
		must(t, f.admin.Get(ctx, client.ObjectKeyFromObject(before), before))
		must(t, f.admin.Delete(ctx, policyOf(admission.Operator)))
		f.await("the policy is there again", func(ctx context.Context) (bool, error) {
			err := f.admin.Get(ctx, client.ObjectKeyFromObject(after), after)
			return err == nil && after.UID != before.UID, client.IgnoreNotFound(err)
		})
		f.inForce()
		f.told("ValidatingAdmissionPolicy " + admission.Operator + " was deleted")
	})
	for what, change := range map[string]struct {
		object client.Object
		patch  client.Patch
		gone   func(client.Object) bool
	}{
		"a policy that lets everything pass": {policyOf(admission.Operator), merge(`{"spec": {"validations": [{"expression": "true"}]}}`),
			func(o client.Object) bool {
				return len(o.(*admissionv1.ValidatingAdmissionPolicy).Spec.Validations) > 1
			}},
		"a policy about nobody": {policyOf(admission.Kubelets),
			client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec": {"matchConditions": [{"name": "never", "expression": "false"}]}}`)),
			func(o client.Object) bool {
				return !slices.ContainsFunc(o.(*admissionv1.ValidatingAdmissionPolicy).Spec.MatchConditions,
					func(c admissionv1.MatchCondition) bool { return c.Name == "never" })
			}},
		"a policy that lets pass what fails": {policyOf(admission.CloudNodeManagers), merge(`{"spec": {"failurePolicy": "Ignore"}}`),
			func(o client.Object) bool {
				return *o.(*admissionv1.ValidatingAdmissionPolicy).Spec.FailurePolicy == admissionv1.Fail
			}},
		"a binding that only warns": {bindingOf(admission.Operator), merge(`{"spec": {"validationActions": ["Warn"]}}`),
			func(o client.Object) bool {
				return slices.Equal(o.(*admissionv1.ValidatingAdmissionPolicyBinding).Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny})
			}},
		"a policy that belongs to nobody": {policyOf(admission.Operator), merge(`{"metadata": {"ownerReferences": null}}`),
			func(o client.Object) bool { return len(o.GetOwnerReferences()) == 1 }},
	} {
		t.Run(what+" is put in order", func(t *testing.T) {
			f := f.within(t)
			must(t, f.admin.Patch(ctx, change.object, change.patch))
			if change.gone(change.object) {
				t.Fatal("the change was none")
			}
			f.await("it is as it was", func(ctx context.Context) (bool, error) {
				err := f.admin.Get(ctx, client.ObjectKeyFromObject(change.object), change.object)
				return err == nil && change.gone(change.object), client.IgnoreNotFound(err)
			})
		})
	}
	t.Run("what others add to their metadata stays", func(t *testing.T) {
		f := f.within(t)
		object := policyOf(admission.Operator)
		must(t, f.admin.Patch(ctx, object, merge(`{"metadata": {"labels": {"theirs": "yes"}, "annotations": {"theirs": "yes"}}, "spec": {"failurePolicy": "Ignore"}}`)))
		f.await("it is as it was", func(ctx context.Context) (bool, error) {
			err := f.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
			return *object.Spec.FailurePolicy == admissionv1.Fail, err
		})
		if object.Labels["theirs"] != "yes" || object.Annotations["theirs"] != "yes" {
			t.Errorf("the metadata is %+v", object.ObjectMeta)
		}
	})
}

// told waits for an event on the operator's Deployment.
func (f *fixture) told(note string) {
	f.Helper()
	var list eventsv1.EventList
	f.Cleanup(func() {
		for _, e := range list.Items {
			if f.Failed() {
				f.Logf("reported of %s %s was %s: %s", e.Regarding.Kind, e.Regarding.Name, e.Reason, e.Note)
			}
		}
	})
	f.await("the event: "+note, func(ctx context.Context) (bool, error) {
		err := f.admin.List(ctx, &list, client.InNamespace(f.namespace))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Kind == "Deployment" && e.Regarding.Name == admission.Operator && strings.Contains(e.Note, note)
		}), err
	})
}

//
func TestThePoliciesGoWithTheOperatorsNamespace(t *testing.T) {
	f := newFixture(t, "windows-operator-to-be-removed")
	for _, name := range policies() {
		for _, object := range []client.Object{policyOf(name), bindingOf(name)} {
			must(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
			if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "Namespace" ||
				owners[0].Name != f.namespace || owners[0].BlockOwnerDeletion != nil {
				t.Errorf("%s belongs to %+v", name, owners)
			}
			if object.GetLabels()["app.kubernetes.io/managed-by"] != "windows-machine-config-operator" ||
				len(object.GetFinalizers()) > 0 {
				t.Errorf("the metadata of %s is %+v", name, object.GetLabels())
			}
		}
	}
	must(t, f.admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}))
	for _, name := range policies() {
		for _, object := range []client.Object{policyOf(name), bindingOf(name)} {
			f.await(name+" is gone", func(ctx context.Context) (bool, error) {
				err := f.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
				return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			})
		}
	}
	if err := f.running.Stop(); err != nil {
		t.Logf("it lost its rights before it ended: %v", err)
	}
}

// removeWithItsPolicies deletes the namespace of an operator, and waits for the policies that go with it seconds later:
// the operator of the next test would be surprised by that.
func (f *fixture) removeWithItsPolicies() {
	f.Helper()
	ctx := context.WithoutCancel(f.Context())
	if err := f.running.Stop(); err != nil {
		f.Error(err)
	}
	if err := f.admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}); err != nil {
		f.Error(err)
	}
	for _, name := range policies() {
		for _, object := range []client.Object{policyOf(name), bindingOf(name)} {
			err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 3*time.Minute, true,
				func(ctx context.Context) (bool, error) {
					err := f.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
					return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
				})
			if err != nil {
				f.Errorf("%T %s stays: %v", object, name, err)
			}
		}
	}
}

//
func TestAnotherNamespaceTakesThePoliciesOver(t *testing.T) {
	first := newFixture(t, "")
	must(t, first.running.Stop())
	must(t, first.rig.Close())
	f := newFixture(t, "windows-operator-elsewhere")
	t.Cleanup(f.removeWithItsPolicies)
	owners := policyOf(admission.Operator)
	must(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(owners), owners))
	if owners.OwnerReferences[0].Name != f.namespace {
		t.Errorf("the policy belongs to %+v", owners.OwnerReferences)
	}
}
