package machine

import (
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

// strategies are the upgrade strategies of the Machines of MachineSets, by the UID of the MachineSet. A missing
// MachineSet would not recreate its Machines.
type strategies map[types.UID]v1alpha1.UpgradeStrategy

// forMachineSet returns the strategy of the Machines that a MachineSet controls. A Machine without a controlling
// MachineSet cannot be replaced. R-146
func (s strategies) forMachineSet(set types.UID) v1alpha1.UpgradeStrategy {
	if strategy, ok := s[set]; ok {
		return strategy
	}
	return v1alpha1.UpgradeInPlace
}

// parseStrategy returns the strategy from the annotation of a MachineSet, or else the default, and whether the
// annotation is valid.
func parseStrategy(set *machinev1beta1.MachineSet, byDefault v1alpha1.UpgradeStrategy) (strategy v1alpha1.UpgradeStrategy,
	valid bool) {
	value, chosen := set.Annotations[v1alpha1.AnnotationUpgradeStrategy]
	switch strategy := v1alpha1.UpgradeStrategy(value); {
	case !chosen:
		return byDefault, true
	case strategy == v1alpha1.UpgradeReplace, strategy == v1alpha1.UpgradeInPlace:
		return strategy, true
	}
	return byDefault, false
}

// controllingSet returns the reference of a Machine to its controlling MachineSet; nil if there is none.
func controllingSet(machine *machinev1beta1.Machine) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(machine)
	if owner == nil || owner.Kind != "MachineSet" {
		return nil
	}
	return owner
}

// readStrategies reads the upgrade strategies of the Machines, and reports invalid annotations.
func (r *Reconciler) readStrategies(ctx context.Context, machines []*machinev1beta1.Machine) (strategies, error) {
	byDefault, err := r.defaultStrategy(ctx)
	if err != nil {
		return nil, err
	}
	var list machinev1beta1.MachineSetList
	if err := r.Machines.List(ctx, &list, client.InNamespace(v1alpha1.MachineNamespace)); err != nil {
		return nil, fmt.Errorf("list MachineSets: %w", err)
	}
	sets := make(map[types.UID]*machinev1beta1.MachineSet, len(list.Items))
	for i := range list.Items {
		sets[list.Items[i].UID] = &list.Items[i]
	}
	result := strategies{}
	for _, machine := range machines {
		owner := controllingSet(machine)
		if owner == nil {
			continue
		}
		if _, read := sets[owner.UID]; !read {
			if sets[owner.UID], err = r.readLiveSet(ctx, owner); err != nil {
				return nil, err
			}
		}
		set := sets[owner.UID]
		if _, known := result[owner.UID]; known || set == nil {
			continue
		}
		strategy, valid := parseStrategy(set, byDefault)
		if result[set.UID] = strategy; !valid {
			r.reportOnce(set.UID, strategyInvalid(set, byDefault))
		}
	}
	return result, nil
}

// defaultStrategy returns the strategy of MachineSets without the annotation.
func (r *Reconciler) defaultStrategy(ctx context.Context) (v1alpha1.UpgradeStrategy, error) {
	policy := &v1alpha1.WindowsDisruptionPolicy{}
	name := types.NamespacedName{Namespace: r.Namespace, Name: v1alpha1.DisruptionPolicyName}
	if err := r.Client.Get(ctx, name, policy); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read WindowsDisruptionPolicy %s: %w", name, err)
	}
	settings, _ := disruptionpolicy.Parse(policy.Spec) // the gate reports violations
	return settings.UpgradeStrategy, nil
}

// readLiveSet reads a MachineSet that is missing from the cache from the API server. The MachineSet may be newer than
// the cache, and its Machines would otherwise be changed in place. readLiveSet returns nil if the MachineSet no longer
// exists.
func (r *Reconciler) readLiveSet(ctx context.Context, owner *metav1.OwnerReference) (*machinev1beta1.MachineSet, error) {
	set := &machinev1beta1.MachineSet{}
	name := types.NamespacedName{Namespace: v1alpha1.MachineNamespace, Name: owner.Name}
	switch err := r.Live.Get(ctx, name, set); {
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
		return nil, nil //nolint:nilnil // gone is an answer
	case err != nil:
		return nil, fmt.Errorf("read MachineSet %s to check whether it exists: %w", name, err)
	case set.UID != owner.UID:
		return nil, nil //nolint:nilnil // another one has its name
	}
	return set, nil
}

// strategyAnnotation returns the annotation of a MachineSet, and whether it is set.
func strategyAnnotation(set client.Object) [2]any {
	value, isSet := set.GetAnnotations()[v1alpha1.AnnotationUpgradeStrategy]
	return [2]any{value, isSet}
}
