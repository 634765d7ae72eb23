// Package machine creates WindowsInstances for the Windows Machines of the Machine API. It only reads Machines.
package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	watchsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/controller/source"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Machines are in another namespace than the operator. Only a ClusterRole can grant access there. Events about a
// Machine are in the namespace of the Machine.
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machinesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsdisruptionpolicies,verbs=get;list;watch

// unlabeledRereadInterval is the interval between reads of a Machine without the Windows label that still has an
// instance. Such a Machine is not watched, so that its deletion would otherwise be missed.
const unlabeledRereadInterval = time.Minute

// windowsMachines selects Windows Machines.
func windowsMachines() labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows})
}

// NewCache creates the cache of the Windows Machines and all MachineSets. Only the Machines need the Windows label,
// not the sets. The API server must already serve both kinds.
func NewCache(mgr ctrl.Manager) (cache.Cache, error) {
	namespaces := map[string]cache.Config{v1alpha1.MachineNamespace: {}}
	return queue.NewOptionalCache(mgr, map[client.Object]cache.ByObject{
		&machinev1beta1.Machine{}:    {Namespaces: namespaces, Label: windowsMachines()},
		&machinev1beta1.MachineSet{}: {Namespaces: namespaces},
	})
}

// Reconciler keeps the WindowsInstances in sync with the Windows Machines.
type Reconciler struct {
	// Client reads WindowsInstances and the WindowsDisruptionPolicy.
	Client client.Client
	// Machines reads Machines and MachineSets from the cache of NewCache.
	Machines client.Reader
	// Live reads from the API server whether a Machine missing from the cache was deleted or only lost its label,
	// and whether a MachineSet was deleted.
	Live      client.Reader
	Namespace string
	Events    events.EventRecorder
	// Cluster returns the facts of the cluster, or the reason why they cannot be used.
	Cluster func() (nodespec.Cluster, error)

	// reported contains the reports about Machines that cannot have an instance, and about MachineSets.
	reported recorder.Once[types.UID]
}

// SetupWithManager registers the controller and makes it watch the cache of NewCache. clusterChanged fires when the
// facts of the cluster have changed.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, machines cache.Cache,
	clusterChanged <-chan event.GenericEvent) error {
	// A change of one Machine may affect the instance of another, and comparing all Machines costs less than one
	// request.
	all := queue.Enqueue(ctrl.Request{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("machine-source").
		Watches(&v1alpha1.WindowsDisruptionPolicy{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.WindowsInstance{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(queue.OptionalKind(machines, &machinev1beta1.Machine{}, all, queue.Changed(newMachineView))).
		WatchesRawSource(queue.OptionalKind(machines, &machinev1beta1.MachineSet{}, all, queue.Changed(strategyAnnotation))).
		WatchesRawSource(watchsource.Channel(clusterChanged, all)).
		WithOptions(queue.Options()).
		Complete(r)
}

// Reconcile creates, changes and removes the WindowsInstances of all Machines at once. Without the facts of the
// cluster it waits, because the login of a host depends on the platform.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	facts, err := r.Cluster()
	if err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // it is reported by its reader, and a change of it brings the next reconcile
	}
	var instances v1alpha1.WindowsInstanceList
	if err := r.Client.List(ctx, &instances, client.InNamespace(r.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("list WindowsInstances: %w", err)
	}
	machines, err := r.listMachines(ctx, instances.Items)
	if err != nil {
		return ctrl.Result{}, err
	}

	for _, machine := range machines {
		machine.Status.Addresses = excludePodNetworks(machine.Status.Addresses, facts.Network.HybridClusterNetworks)
	}
	r.reported.Begin()
	chosen, err := r.readStrategies(ctx, machines)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted, taken := diffInstances(settings{r.Namespace, facts.Platform, chosen}, machines, instances.Items)
	for _, machine := range taken {
		r.reportOnce(machine.UID, instanceNameConflict(machine, r.Namespace))
	}
	byName := make(map[string]*machinev1beta1.Machine, len(machines))
	for _, machine := range machines {
		byName[machine.Name] = machine
		r.reportMetadata(machine)
	}
	var errs []error
	for _, change := range wanted {
		errs = append(errs, r.apply(ctx, change, byName[change.After.Name]))
	}
	r.reported.End()
	return ctrl.Result{RequeueAfter: nextRereadDelay(machines)}, errors.Join(errs...)
}

// listMachines returns the Windows Machines in the cache, and the Machines of instances that are not in the cache:
// these are read from the API server. A Machine in neither was deleted.
func (r *Reconciler) listMachines(ctx context.Context, instances []v1alpha1.WindowsInstance) ([]*machinev1beta1.Machine,
	error) {
	var list machinev1beta1.MachineList
	if err := r.Machines.List(ctx, &list, client.InNamespace(v1alpha1.MachineNamespace)); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	byName := make(map[string]*machinev1beta1.Machine, len(list.Items))
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	for i := range instances {
		reference := instances[i].Spec.Source.Machine
		if reference == nil || instances[i].Spec.DesiredState == v1alpha1.DesiredStateRemoved {
			continue
		}
		if cached, ok := byName[reference.Name]; ok && cached.UID == reference.UID {
			continue
		}
		key := types.NamespacedName{Namespace: v1alpha1.MachineNamespace, Name: reference.Name}
		machine := &machinev1beta1.Machine{}
		switch err := r.Live.Get(ctx, key, machine); {
		case err == nil:
			byName[reference.Name] = machine
		case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
			// An API server that does not serve Machines, for example during its start, responds differently.
			delete(byName, reference.Name)
		default:
			return nil, fmt.Errorf("read Machine %s to check whether it exists: %w", key, err)
		}
	}
	machines := make([]*machinev1beta1.Machine, 0, len(byName))
	for _, machine := range byName {
		machines = append(machines, machine)
	}
	return machines, nil
}

// nextRereadDelay returns the delay before unwatched Machines are read again; zero if there are none.
func nextRereadDelay(machines []*machinev1beta1.Machine) time.Duration {
	for _, machine := range machines {
		if !windowsMachines().Matches(labels.Set(machine.Labels)) {
			return unlabeledRereadInterval
		}
	}
	return 0
}

func (r *Reconciler) apply(ctx context.Context, change source.Change, machine *machinev1beta1.Machine) error {
	inForce, err := change.Apply(ctx, r.Client)
	switch {
	case apierrors.IsInvalid(err) && machine != nil:
		// A retry would not help: a change of the Machine triggers the next reconcile.
		r.reportOnce(machine.UID, instanceRejected(machine, err))
	case err != nil:
		return fmt.Errorf("for Machine %s/%s: %w", v1alpha1.MachineNamespace, change.After.Spec.Source.Machine.Name, err)
	case !inForce:
	case change.IsCreation():
		recorder.Emit(r.Events, instanceCreated(machine, change.After))
	case change.ChangesStateTo(v1alpha1.DesiredStateRemoved):
		recorder.Emit(r.Events, machineNotFound(change.After))
	case change.ChangesStateTo(v1alpha1.DesiredStateUnmanaged):
		recorder.Emit(r.Events, hostUnmanaged(machine, change.After))
	case change.ChangesStateTo(v1alpha1.DesiredStateNode):
		recorder.Emit(r.Events, machineManaged(machine, change.After))
	}
	return nil
}
