package fakemachineapi

import (
	"context"
	"errors"
	"fmt"
	"maps"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// machineSetReconciler scales the Machines of a MachineSet to the desired number.
type machineSetReconciler struct{ base }

func (r *machineSetReconciler) setUp(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("machineset").
		For(&machinev1.MachineSet{}).
		Watches(&machinev1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.setsOf)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.setsOfNode)).
		WithOptions(r.controllerOptions(1)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *machineSetReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &machinev1.MachineSet{}
	if err := r.Get(ctx, request.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !set.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil // The garbage collector deletes its Machines.
	}
	selector, err := selectorOf(set)
	if err != nil {
		return reconcile.Result{}, r.reportInvalid(ctx, set, err.Error())
	}
	// The cache may not contain the Machines of the previous reconcile yet.
	list := &machinev1.MachineList{}
	if err := r.live.List(ctx, list, client.InNamespace(set.Namespace),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return reconcile.Result{}, err
	}
	machines, err := r.claimMachines(ctx, set, list.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	scaleErr := r.scaleMachines(ctx, set, machines)
	if scaleErr != nil {
		r.events.Eventf(set, nil, corev1.EventTypeWarning, "ReconcileError", "Scale", "%s", scaleErr.Error())
	}
	waiting, err := r.updateStatus(ctx, set, selector, machines)
	if err != nil {
		return reconcile.Result{}, err
	}
	if scaleErr != nil {
		return reconcile.Result{}, scaleErr
	}
	return reconcile.Result{RequeueAfter: waiting}, nil
}

// selectorOf returns the selector of a set. A selector that does not match the template's labels would cause an
// endless creation of Machines and is an error.
func selectorOf(set *machinev1.MachineSet) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector is invalid: %w", err)
	}
	if selector.Empty() || !selector.Matches(labels.Set(set.Spec.Template.Labels)) {
		return nil, errors.New("spec.selector does not select the labels of spec.template.metadata: no Machine is made or deleted")
	}
	return selector, nil
}

func (r *machineSetReconciler) reportInvalid(ctx context.Context, set *machinev1.MachineSet, message string) error {
	r.events.Eventf(set, nil, corev1.EventTypeWarning, "ReconcileError", "Reconcile", "%s", message)
	before := set.DeepCopy()
	set.Status.ObservedGeneration = set.Generation
	set.Status.ErrorReason = ptr.To(machinev1.InvalidConfigurationMachineSetError)
	set.Status.ErrorMessage = &message
	return r.saveStatus(ctx, before, set)
}

// claimMachines returns the set's Machines that are not being deleted, after adopting Machines without owner.
func (r *machineSetReconciler) claimMachines(ctx context.Context, set *machinev1.MachineSet,
	all []machinev1.Machine) ([]*machinev1.Machine, error) {
	var machines []*machinev1.Machine
	for i := range all {
		m := &all[i]
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		owner := metav1.GetControllerOf(m)
		if owner != nil && owner.UID != set.UID {
			continue
		}
		if owner == nil {
			before := m.DeepCopy()
			m.OwnerReferences = append(m.OwnerReferences, *controllerReference(set))
			if err := r.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
				return nil, fmt.Errorf("adopt Machine %s: %w", m.Name, err)
			}
			r.Logger.Info("a MachineSet adopted a Machine", "set", set.Name, "machine", m.Name)
		}
		machines = append(machines, m)
	}
	return machines, nil
}

func controllerReference(set *machinev1.MachineSet) *metav1.OwnerReference {
	return metav1.NewControllerRef(set, machinev1.GroupVersion.WithKind("MachineSet"))
}

// scaleMachines creates missing Machines or deletes surplus ones. Machines that are being deleted do not count: they
// are replaced at once. R-042 R-044
func (r *machineSetReconciler) scaleMachines(ctx context.Context, set *machinev1.MachineSet,
	machines []*machinev1.Machine) error {
	surplus := len(machines) - int(ptr.Deref(set.Spec.Replicas, 1))
	if surplus < 0 {
		if deleted, err := r.isGone(ctx, set); err != nil || deleted {
			return err
		}
	}
	for range -surplus {
		m := newMachine(set)
		if err := r.Create(ctx, m); err != nil {
			return fmt.Errorf("make a Machine: %w", err)
		}
		r.Logger.Info("a MachineSet made a Machine", "set", set.Name, "machine", m.Name)
	}
	if surplus <= 0 {
		return nil
	}
	for _, m := range deletionOrder(machines, machinev1.MachineSetDeletePolicy(set.Spec.DeletePolicy))[:surplus] {
		if err := client.IgnoreNotFound(r.Delete(ctx, m)); err != nil {
			return fmt.Errorf("delete Machine %s: %w", m.Name, err)
		}
		r.Logger.Info("a MachineSet deleted a Machine", "set", set.Name, "machine", m.Name)
	}
	return nil
}

// isGone reads the set from the API server: the cache may still contain a deleted set while the garbage
// collector deletes its Machines.
func (r *machineSetReconciler) isGone(ctx context.Context, set *machinev1.MachineSet) (bool, error) {
	now := &machinev1.MachineSet{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(set), now); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return now.UID != set.UID || !now.DeletionTimestamp.IsZero(), nil
}

// newMachine returns a Machine from the template; the API server completes the name with five random
// characters.
func newMachine(set *machinev1.MachineSet) *machinev1.Machine {
	template := set.Spec.Template.DeepCopy()
	return &machinev1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: set.Name + "-", Namespace: set.Namespace, Labels: template.Labels,
			Annotations:     maps.Clone(template.Annotations),
			OwnerReferences: []metav1.OwnerReference{*controllerReference(set)},
		},
		Spec: template.Spec,
	}
}

// setsOf returns the sets affected by a change of a Machine: the owner, or all sets that may adopt the Machine.
func (r *machineSetReconciler) setsOf(ctx context.Context, object client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}}}
	}
	sets := &machinev1.MachineSetList{}
	if err := r.List(ctx, sets, client.InNamespace(object.GetNamespace())); err != nil {
		return nil // The cache has stopped.
	}
	var requests []reconcile.Request
	for i := range sets.Items {
		if selector, err := selectorOf(&sets.Items[i]); err == nil && selector.Matches(labels.Set(object.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return requests
}

func (r *machineSetReconciler) setsOfNode(ctx context.Context, node client.Object) []reconcile.Request {
	machines, err := r.listMachines(ctx)
	if err != nil {
		return nil // The cache has stopped.
	}
	for i := range machines {
		if ref := machines[i].Status.NodeRef; ref != nil && ref.Name == node.GetName() {
			return r.setsOf(ctx, &machines[i])
		}
	}
	return nil
}

// saveStatus writes the status of a set if it has changed.
func (r *machineSetReconciler) saveStatus(ctx context.Context, before, set *machinev1.MachineSet) error {
	if equality.Semantic.DeepEqual(before.Status, set.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Status().Patch(ctx, set, client.MergeFrom(before)))
}
