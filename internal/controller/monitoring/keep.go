package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// outcome is how an object stands that the operator wants.
type outcome int

const (
	// inPlace means that the object is as wanted.
	inPlace outcome = iota
	// notServed means that the API server does not have its kind.
	notServed
	// ofOthers means that somebody else has an object of the name. It stays as it is.
	ofOthers
)

// keep makes the object, or corrects it. It reads the API server and no cache: nothing is held in memory for it.
func (r *Reconciler) keep(ctx context.Context, k kept) (outcome, error) {
	found, state, err := r.read(ctx, k)
	switch {
	case err != nil, state != inPlace:
		return state, err
	case found == nil:
		return r.create(ctx, k)
	}
	after, ok := found.DeepCopyObject().(client.Object)
	if !ok {
		return inPlace, fmt.Errorf("copy %s", named(k.object))
	}
	fill(k, after)
	if equality.Semantic.DeepEqual(found, after) {
		return inPlace, nil
	}
	if err := r.Client.Update(ctx, after); err != nil {
		return inPlace, fmt.Errorf("correct %s: %w", named(k.object), err)
	}
	log.FromContext(ctx).Info("corrected", "object", named(k.object))
	return inPlace, nil
}

// read returns the present object; nil when there is none.
func (r *Reconciler) read(ctx context.Context, k kept) (client.Object, outcome, error) {
	found, ok := k.object.DeepCopyObject().(client.Object)
	if !ok {
		return nil, inPlace, fmt.Errorf("copy %s", named(k.object))
	}
	switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(k.object), found); {
	case meta.IsNoMatchError(err):
		return nil, notServed, nil
	case apierrors.IsNotFound(err):
		return nil, inPlace, nil
	case err != nil:
		return nil, inPlace, fmt.Errorf("read %s: %w", named(k.object), err)
	case !ours(k, found):
		return found, ofOthers, nil
	}
	// The API server does not repeat the kind in what it answers for typed objects.
	found.GetObjectKind().SetGroupVersionKind(k.object.GetObjectKind().GroupVersionKind())
	return found, inPlace, nil
}

// create makes the object by an apply and not by a create: that has the name in its URL, so that RBAC can bind the
// right to it.
func (r *Reconciler) create(ctx context.Context, k kept) (outcome, error) {
	object, ok := k.object.DeepCopyObject().(client.Object)
	if !ok {
		return inPlace, fmt.Errorf("copy %s", named(k.object))
	}
	fill(k, object)
	data, err := json.Marshal(object)
	if err != nil {
		return inPlace, fmt.Errorf("encode %s: %w", named(k.object), err)
	}
	err = r.Client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(manager))
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return notServed, nil // the kind went away, or has not arrived at this API server
	case err != nil:
		return inPlace, fmt.Errorf("make %s: %w", named(k.object), err)
	}
	log.FromContext(ctx).Info("created", "object", named(k.object))
	return inPlace, nil
}

// keepAll makes or corrects objects, all that it can.
func (r *Reconciler) keepAll(ctx context.Context, all []kept) ([]outcome, error) {
	states, errs := make([]outcome, len(all)), make([]error, len(all))
	for i, k := range all {
		states[i], errs[i] = r.keep(ctx, k)
	}
	return states, errors.Join(errs...)
}

// dropAll deletes objects, all that it can.
func (r *Reconciler) dropAll(ctx context.Context, all []kept) error {
	var errs []error
	for _, k := range all {
		errs = append(errs, r.drop(ctx, k))
	}
	return errors.Join(errs...)
}

// drop deletes the object if it is the operator's.
func (r *Reconciler) drop(ctx context.Context, k kept) error {
	found, state, err := r.read(ctx, k)
	if err != nil || state != inPlace || found == nil {
		return err
	}
	uid := found.GetUID()
	if err := r.Client.Delete(ctx, found, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", named(k.object), err)
	}
	log.FromContext(ctx).Info("deleted", "object", named(k.object))
	return nil
}

// ours reports whether an object of the wanted name is the operator's, or that of an operator before version 12.
func ours(k kept, found client.Object) bool {
	switch found.GetLabels()[labelManagedBy] {
	case manager:
		return true
	case "":
		return k.older(found)
	}
	return false
}

// fill puts into an object what is wanted. The objects of an operator before version 12 belonged to the
// ClusterServiceVersion that had brought them, and went with it.
func fill(k kept, object client.Object) {
	k.fill(object)
	setLabels(object, map[string]string{labelManagedBy: manager})
	object.SetOwnerReferences(slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()),
		func(owner metav1.OwnerReference) bool { return owner.Kind == "ClusterServiceVersion" }))
}

// named names an object for people.
func named(object client.Object) string {
	return fmt.Sprintf("%s %s/%s", object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName())
}
