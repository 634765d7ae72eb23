package fakemachineapi

import (
	"context"
	"fmt"
	"strings"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// deleteMachine deletes the resources of a Machine in this order: the pods on the Node, the virtual machine, the Node,
// and finally the Machine.
func (r *machineReconciler) deleteMachine(ctx context.Context, m *machinev1.Machine) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(m, machinev1.MachineFinalizer) {
		return reconcile.Result{}, nil
	}
	before := m.DeepCopy()
	m.Status.Phase = ptr.To(machinev1.PhaseDeleting)
	if err := r.saveMachine(ctx, before, m); err != nil {
		return reconcile.Result{}, err
	}
	for _, step := range []func(context.Context, *machinev1.Machine) (bool, error){r.drainNode, r.canTerminate, r.deleteVirtualMachine} {
		if done, err := step(ctx, m); err != nil || !done {
			return reconcile.Result{RequeueAfter: pendingInterval}, err
		}
	}
	if m.Status.NodeRef != nil {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeRef.Name}}
		if err := client.IgnoreNotFound(r.Delete(ctx, node)); err != nil {
			return reconcile.Result{}, fmt.Errorf("delete the Node of %s: %w", m.Name, err)
		}
	}
	before = m.DeepCopy()
	controllerutil.RemoveFinalizer(m, machinev1.MachineFinalizer)
	if err := r.saveMachine(ctx, before, m); err != nil {
		return reconcile.Result{}, err
	}
	r.Logger.Info("a Machine is gone", "machine", m.Name)
	return reconcile.Result{}, nil
}

// canTerminate reports whether all pre-terminate hooks are released.
func (r *machineReconciler) canTerminate(ctx context.Context, m *machinev1.Machine) (bool, error) {
	return r.hasNoHooks(ctx, m, machinev1.MachineTerminable, "pre-terminate", m.Spec.LifecycleHooks.PreTerminate)
}

// hasNoHooks reports whether no hook blocks the Machine's deletion, and records the result in the condition.
func (r *machineReconciler) hasNoHooks(
	ctx context.Context, m *machinev1.Machine, kind machinev1.ConditionType, point string, hooks []machinev1.LifecycleHook,
) (bool, error) {
	before := m.DeepCopy()
	condition := trueCondition(kind, "")
	if len(hooks) > 0 {
		names := make([]string, len(hooks))
		for i, hook := range hooks {
			names[i] = hook.Name + " of " + hook.Owner
		}
		condition = falseCondition(kind, machinev1.ConditionSeverityWarning, machinev1.MachineHookPresent,
			fmt.Sprintf("held up by %s hooks: %s", point, strings.Join(names, ", ")))
	}
	setCondition(&m.Status.Conditions, r.Clock.Now(), condition)
	return len(hooks) == 0, r.saveMachine(ctx, before, m)
}

// deleteVirtualMachine deletes the virtual machine; true if it no longer exists.
func (r *machineReconciler) deleteVirtualMachine(ctx context.Context, m *machinev1.Machine) (bool, error) {
	id := instanceID(r.Platform, m.UID)
	if err := r.Cloud.Delete(ctx, id); err != nil {
		r.events.Eventf(m, nil, corev1.EventTypeWarning, "FailedDelete", "Delete", "%s", err.Error())
		return false, fmt.Errorf("delete the virtual machine %s of %s: %w", id, m.Name, err)
	}
	_, found, err := r.Cloud.Describe(ctx, id)
	if err != nil {
		return false, fmt.Errorf("ask the cloud whether the virtual machine %s of %s is gone: %w", id, m.Name, err)
	}
	return !found, nil
}
