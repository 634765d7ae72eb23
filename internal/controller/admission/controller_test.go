package admission_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/controller/admission"
)

func TestPolicies_EnforcedAndRestored(t *testing.T) {
	f := newFixture(t, "")
	ctx := t.Context()

	t.Run("the API server finds nothing wrong with their expressions", func(t *testing.T) {
		f := f.forSubtest(t)
		for _, name := range policyNames() {
			policy := policyOf(name)
			f.waitUntil("policy "+name+" is checked", func(ctx context.Context) (bool, error) {
				err := f.admin.Get(ctx, client.ObjectKeyFromObject(policy), policy)
				return policy.Status.ObservedGeneration == policy.Generation && policy.Status.TypeChecking != nil, err
			})
			for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("policy %s, %s: %s", name, warning.FieldRef, warning.Warning)
			}
		}
	})
	operator, recorder := f.newReconciler()
	reconcile := func(t *testing.T) {
		t.Helper()
		if _, err := operator.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	reconcile(t)
	t.Run("a policy that is deleted is made again", func(t *testing.T) {
		f := f.forSubtest(t)
		before, after := policyOf(admission.Kubelets), policyOf(admission.Kubelets)
		requireNoError(t, f.admin.Get(ctx, client.ObjectKeyFromObject(before), before))
		requireNoError(t, f.admin.Delete(ctx, policyOf(admission.Kubelets)))
		reconcile(t)
		requireNoError(t, f.admin.Get(ctx, client.ObjectKeyFromObject(after), after))
		if after.UID == before.UID {
			t.Error("it was not deleted")
		}
		f.waitForPolicies()
		if event := <-recorder.Events; !strings.Contains(event, "ValidatingAdmissionPolicy "+admission.Kubelets+" was deleted") {
			t.Errorf("the event is %q", event)
		}
	})
	for what, change := range map[string]struct {
		object     client.Object
		patch      client.Patch
		isReverted func(client.Object) bool
	}{
		"a policy that lets everything pass": {policyOf(admission.Kubelets), newMergePatch(`{"spec": {"validations": [{"expression": "true"}]}}`),
			func(o client.Object) bool {
				return len(o.(*admissionv1.ValidatingAdmissionPolicy).Spec.Validations) > 1
			}},
		"a policy about nobody": {policyOf(admission.Kubelets),
			client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec": {"matchConditions": [{"name": "never", "expression": "false"}]}}`)),
			func(o client.Object) bool {
				return !slices.ContainsFunc(o.(*admissionv1.ValidatingAdmissionPolicy).Spec.MatchConditions,
					func(c admissionv1.MatchCondition) bool { return c.Name == "never" })
			}},
		"a policy that lets pass what fails": {policyOf(admission.CloudNodeManagers), newMergePatch(`{"spec": {"failurePolicy": "Ignore"}}`),
			func(o client.Object) bool {
				return *o.(*admissionv1.ValidatingAdmissionPolicy).Spec.FailurePolicy == admissionv1.Fail
			}},
		"a binding that only warns": {bindingOf(admission.Kubelets), newMergePatch(`{"spec": {"validationActions": ["Warn"]}}`),
			func(o client.Object) bool {
				return slices.Equal(o.(*admissionv1.ValidatingAdmissionPolicyBinding).Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny})
			}},
		"a policy that belongs to nobody": {policyOf(admission.Kubelets), newMergePatch(`{"metadata": {"ownerReferences": null}}`),
			func(o client.Object) bool { return len(o.GetOwnerReferences()) == 1 }},
	} {
		t.Run(what+" is put in order", func(t *testing.T) {
			f := f.forSubtest(t)
			requireNoError(t, f.admin.Patch(ctx, change.object, change.patch))
			if change.isReverted(change.object) {
				t.Fatal("the change was none")
			}
			reconcile(t)
			requireNoError(t, f.admin.Get(ctx, client.ObjectKeyFromObject(change.object), change.object))
			if !change.isReverted(change.object) {
				t.Errorf("it is %+v", change.object)
			}
			if event := <-recorder.Events; !strings.Contains(event, change.object.GetName()+" was changed") {
				t.Errorf("the event is %q", event)
			}
		})
	}
	t.Run("what others add to their metadata stays", func(t *testing.T) {
		f := f.forSubtest(t)
		object := policyOf(admission.Kubelets)
		requireNoError(t, f.admin.Patch(ctx, object, newMergePatch(`{"metadata": {"labels": {"theirs": "yes"}, "annotations": {"theirs": "yes"}}, "spec": {"failurePolicy": "Ignore"}}`)))
		reconcile(t)
		requireNoError(t, f.admin.Get(ctx, client.ObjectKeyFromObject(object), object))
		if *object.Spec.FailurePolicy != admissionv1.Fail || object.Labels["theirs"] != "yes" || object.Annotations["theirs"] != "yes" {
			t.Errorf("the metadata is %+v", object.ObjectMeta)
		}
	})
}

// newReconciler returns a controller with the rights of the operator, and the recorder of its events.
func (f *fixture) newReconciler() (*admission.Reconciler, *events.FakeRecorder) {
	recorder := events.NewFakeRecorder(100)
	return &admission.Reconciler{Client: f.operator, Live: f.operator, Namespace: f.namespace, Events: recorder}, recorder
}

//
func TestPolicies_DeletedWithOperatorNamespace(t *testing.T) {
	f := newFixture(t, "windows-operator-to-be-removed")
	for _, name := range policyNames() {
		for _, object := range []client.Object{policyOf(name), bindingOf(name)} {
			requireNoError(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
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
	requireNoError(t, f.admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}))
	for _, name := range policyNames() {
		for _, object := range []client.Object{policyOf(name), bindingOf(name)} {
			f.waitUntil(name+" is gone", func(ctx context.Context) (bool, error) {
				err := f.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
				return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			})
		}
	}
	if err := f.running.Stop(); err != nil {
		t.Logf("it lost its rights before it ended: %v", err)
	}
}

// deleteWithPolicies deletes the namespace of an operator, and waits until its policies are deleted, which
// takes seconds. Otherwise the late deletion would affect the operator of the next test.
func (f *fixture) deleteWithPolicies() {
	f.Helper()
	ctx := context.WithoutCancel(f.Context())
	if err := f.running.Stop(); err != nil {
		f.Error(err)
	}
	if err := f.admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}); err != nil {
		f.Error(err)
	}
	for _, name := range policyNames() {
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
func TestPolicies_AdoptedByOtherNamespace(t *testing.T) {
	first := newFixture(t, "")
	requireNoError(t, first.running.Stop())
	requireNoError(t, first.env.Close())
	f := newFixture(t, "windows-operator-elsewhere")
	t.Cleanup(f.deleteWithPolicies)
	owners := policyOf(admission.Kubelets)
	requireNoError(t, f.admin.Get(t.Context(), client.ObjectKeyFromObject(owners), owners))
	if owners.OwnerReferences[0].Name != f.namespace {
		t.Errorf("the policy belongs to %+v", owners.OwnerReferences)
	}
}
