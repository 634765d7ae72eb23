package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// emptyOf returns an object to read one of the same kind into.
func emptyOf(wanted client.Object) client.Object {
	switch wanted.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		return &admissionv1.ValidatingAdmissionPolicy{}
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return &admissionv1.ValidatingAdmissionPolicyBinding{}
	}
	// Only kinds of this package are asked for.
	panic(fmt.Sprintf("%T is not kept", wanted))
}

// alike reports whether a present object says what is wanted. Labels and annotations of others do not matter.
func alike(wanted, found client.Object) bool {
	if !maps.Equal(withLabels(found.GetLabels(), wanted.GetLabels()), found.GetLabels()) ||
		!equality.Semantic.DeepEqual(wanted.GetOwnerReferences(), found.GetOwnerReferences()) {
		return false
	}
	switch wanted := wanted.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		found, ok := found.(*admissionv1.ValidatingAdmissionPolicy)
		return ok && equality.Semantic.DeepEqual(wanted.Spec, found.Spec)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		found, ok := found.(*admissionv1.ValidatingAdmissionPolicyBinding)
		return ok && equality.Semantic.DeepEqual(wanted.Spec, found.Spec)
	}
	return false
}

// withLabels returns the present labels with those that are wanted.
func withLabels(present, wanted map[string]string) map[string]string {
	all := maps.Clone(wanted)
	for name, value := range present {
		if _, ours := wanted[name]; !ours {
			all[name] = value
		}
	}
	return all
}

// apply makes an object by a server-side apply.
func (r *Reconciler) apply(ctx context.Context, wanted client.Object) error {
	data, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	answer, _ := wanted.DeepCopyObject().(client.Object)
	return r.Client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(managedBy),
		client.ForceOwnership)
}
