// Package owned creates and corrects objects that the operator owns.
package owned

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Object is an object that the operator owns.
type Object struct {
	// Identity contains the kind, namespace and name.
	Identity client.Object
	// Fill sets all desired fields in a new or existing object, except the label of its manager.
	Fill func(client.Object)
	// Adopt reports whether the operator adopts an existing object without the operator's label; nil for never.
	Adopt func(client.Object) bool
}

// String returns the object's kind, namespace and name.
func (o Object) String() string {
	name := o.Identity.GetName()
	if namespace := o.Identity.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return o.Identity.GetObjectKind().GroupVersionKind().Kind + " " + name
}

// State is the result of Keep.
type State int

const (
	// Unchanged means that the object was as desired, or that the state is unknown because of an error.
	Unchanged State = iota
	// Created means that the object did not exist.
	Created
	// Corrected means that the object was different.
	Corrected
	// NotServed means that the API server does not serve the kind.
	NotServed
	// Foreign means that the object has another owner. The object is not changed.
	Foreign
)

// Keeper creates and corrects objects.
type Keeper struct {
	Client client.Client
	// Live reads the API server, so that the objects are not kept in memory.
	Live client.Reader
}

// Keep creates or corrects the object.
func (k Keeper) Keep(ctx context.Context, o Object) (State, error) {
	found, state, err := k.read(ctx, o)
	switch {
	case err != nil, state != Unchanged:
		return state, err
	case found == nil:
		return k.applyObject(ctx, o)
	}
	wanted := fillObject(o, found)
	if equality.Semantic.DeepEqual(found, wanted) {
		return Unchanged, nil
	}
	err = k.Client.Patch(ctx, wanted, client.MergeFromWithOptions(found, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsNotFound(err): // deleted since the read
		return k.applyObject(ctx, o)
	case err != nil:
		return Unchanged, fmt.Errorf("correct %s: %w", o, err)
	}
	log.FromContext(ctx).Info("corrected", "object", o.String())
	return Corrected, nil
}

// Delete deletes the object if owned by the operator.
func (k Keeper) Delete(ctx context.Context, o Object) error {
	found, state, err := k.read(ctx, o)
	if err != nil || state != Unchanged || found == nil {
		return err
	}
	uid := found.GetUID()
	if err := k.Client.Delete(ctx, found, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", o, err)
	}
	log.FromContext(ctx).Info("deleted", "object", o.String())
	return nil
}

// read returns the current object; nil if missing.
func (k Keeper) read(ctx context.Context, o Object) (client.Object, State, error) {
	found := copyOf(o.Identity)
	switch err := k.Live.Get(ctx, client.ObjectKeyFromObject(found), found); {
	case meta.IsNoMatchError(err):
		return nil, NotServed, nil
	case apierrors.IsNotFound(err):
		return nil, Unchanged, nil
	case err != nil:
		return nil, Unchanged, fmt.Errorf("read %s: %w", o, err)
	case found.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.OperatorName && (o.Adopt == nil || !o.Adopt(found)):
		return found, Foreign, nil
	}
	// The API server omits the kind in responses for typed objects.
	found.GetObjectKind().SetGroupVersionKind(o.Identity.GetObjectKind().GroupVersionKind())
	return found, Unchanged, nil
}

// applyObject applies the object instead of creating it: the URL of an apply contains the name, so that RBAC can
// restrict the right.
func (k Keeper) applyObject(ctx context.Context, o Object) (State, error) {
	wanted := fillObject(o, o.Identity)
	data, err := json.Marshal(wanted)
	if err != nil {
		return Unchanged, fmt.Errorf("encode %s: %w", o, err)
	}
	err = k.Client.Patch(ctx, wanted, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(v1alpha1.OperatorName))
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return NotServed, nil // the kind was removed, or has not arrived at this API server
	case err != nil:
		return Unchanged, fmt.Errorf("create %s: %w", o, err)
	}
	log.FromContext(ctx).Info("created", "object", o.String())
	return Created, nil
}

// fillObject returns a copy of an object with all desired fields set. The objects of a legacy operator belonged to
// its ClusterServiceVersion, and were deleted with it.
func fillObject(o Object, from client.Object) client.Object {
	object := copyOf(from)
	o.Fill(object)
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelManagedBy] = v1alpha1.OperatorName
	object.SetLabels(labels)
	object.SetOwnerReferences(slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()),
		func(owner metav1.OwnerReference) bool { return owner.Kind == "ClusterServiceVersion" }))
	return object
}

func copyOf(object client.Object) client.Object {
	return object.DeepCopyObject().(client.Object) //nolint:errcheck,forcetypeassert // a copy has the type of its original
}
