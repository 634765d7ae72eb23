// Package source contains the common code of the sources of WindowsInstances: how a source changes an instance, and
// which parts do not belong to the source.
package source

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Change is one WindowsInstance before and after a change; Before is nil for a new instance.
type Change struct {
	Before, After *v1alpha1.WindowsInstance
}

// UpdateSpec returns the change of an instance to another spec, and whether there is a difference. The field Paused
// belongs to the user and is preserved.
func UpdateSpec(have *v1alpha1.WindowsInstance, spec v1alpha1.WindowsInstanceSpec) (Change, bool) {
	spec.Paused = have.Spec.Paused
	if equality.Semantic.DeepEqual(have.Spec, spec) {
		return Change{}, false
	}
	after := have.DeepCopy()
	after.Spec = spec
	return Change{Before: have, After: after}, true
}

// Remove returns the change that marks an instance for removal, and whether it is not marked yet. The instance
// controller then removes the host and deletes the object.
func Remove(have *v1alpha1.WindowsInstance) (Change, bool) {
	spec := *have.Spec.DeepCopy()
	spec.DesiredState, spec.DesiredStateReason = v1alpha1.DesiredStateRemoved, ""
	return UpdateSpec(have, spec)
}

// IsCreation reports whether the change creates a new instance.
func (c Change) IsCreation() bool { return c.Before == nil }

// ChangesStateTo reports whether the change moves an existing instance to another desired state.
func (c Change) ChangesStateTo(state v1alpha1.DesiredState) bool {
	return c.Before != nil && c.Before.Spec.DesiredState != state && c.After.Spec.DesiredState == state
}

// Apply writes the change and reports whether it took effect. If the result is false without an error, an instance
// with the name was created, or the changed instance was deleted, concurrently. That event triggers the next
// reconcile.
func (c Change) Apply(ctx context.Context, writer client.Client) (bool, error) {
	name := c.After.Namespace + "/" + c.After.Name
	if c.IsCreation() {
		err := writer.Create(ctx, c.After)
		if apierrors.IsAlreadyExists(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("create WindowsInstance %s: %w", name, err)
		}
		return true, nil
	}
	before := c.Before.DeepCopy()
	before.UID = "" // so that the patch contains the UID, and cannot change a later instance with this name
	err := writer.Patch(ctx, c.After, client.MergeFrom(before))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("change WindowsInstance %s: %w", name, err)
	}
	return true, nil
}
