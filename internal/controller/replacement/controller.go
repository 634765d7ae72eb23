// Package replacement deletes Machines whose hosts cannot be brought to what they should be in place, one at a time, so that their MachineSets
// make others. Today the one reason is the SSH key.
package replacement

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/keys"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// Machines are in another namespace than the operator, where it can be given a right by a ClusterRole only.
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machines,verbs=list;watch;delete
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machinesets,verbs=list
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances,verbs=get;list;watch

const (
	// poll is how often the API server is looked at while there are Machines to be replaced, besides when something is seen to change.
	poll = 10 * time.Second
	// leftPoll is how often it is looked at while there are only Machines that somebody else must do something about.
	leftPoll = 5 * time.Minute
)

// Reconciler replaces Machines. It does one thing at a time.
type Reconciler struct {
	// Client reads what is in memory, which tells whether there is anything to do, and deletes Machines.
	Client client.Client
	// Live reads the API server: a Machine is deleted for what is true now.
	Live      client.Reader
	Namespace string
	Events    events.EventRecorder
	Clock     clock.PassiveClock

	// key and previous are the hashes of the public keys, and since is when these two were first seen.
	key, previous string
	since         time.Time
	// told is what was last said of a Machine.
	told map[types.UID]string
}

// SetupWithManager registers the controller. The API server must know Machines by then.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("replacement").
		Watches(&corev1.Secret{}, once, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.GetNamespace() == r.Namespace && o.GetName() == keys.SecretName
		}))).
		Watches(&corev1.Node{}, once, builder.WithPredicates(whenOther(func(n *corev1.Node) policy.FleetNode {
			return fleetNode(n, n.Annotations[v1alpha1.AnnotationPubKeyHash])
		}))).
		Watches(&v1alpha1.WindowsInstance{}, once, builder.WithPredicates(whenOther(func(i *v1alpha1.WindowsInstance) [4]any {
			return [4]any{i.Spec.Paused, refused(i), ptr.Deref(i.Status.NodeRef, v1alpha1.NodeReference{}).Name, i.Status.PublicKeyHash}
		}))).
		Watches(&machinev1beta1.Machine{}, once, builder.WithPredicates(whenOther(func(m *machinev1beta1.Machine) policy.FleetMachine {
			return fleetMachine(m, nil, nil)
		}))).
		Complete(r)
}

// whenOther lets through the changes of an object that change what a decision is made of.
func whenOther[T client.Object, V comparable](look func(T) V) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, ok2 := e.ObjectNew.(T)
		return !ok || !ok2 || look(before) != look(after)
	}}
}

// Reconcile deletes the Machine whose turn it is. With nothing to do, it asks the API server nothing.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	key, err := keys.Read(ctx, r.Client, r.Namespace)
	if errors.Is(err, keys.ErrMissing) || errors.Is(err, keys.ErrInvalid) {
		// It is told elsewhere. No host can be brought to a key that nobody has.
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if key.Hash() != r.key {
		r.key, r.since = key.Hash(), r.Clock.Now()
	}
	if outdated, err := r.anyOutdated(ctx); err != nil || !outdated {
		machinesOutdated.Set(0)
		r.told = nil
		return ctrl.Result{}, err
	}
	return r.replaceNext(ctx, key)
}

// anyOutdated tells from memory whether a Machine's Node has another key.
func (r *Reconciler) anyOutdated(ctx context.Context) (bool, error) {
	var instances v1alpha1.WindowsInstanceList
	if err := r.Client.List(ctx, &instances, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelSource: v1alpha1.SourceMachine}); err != nil {
		return false, fmt.Errorf("list WindowsInstances: %w", err)
	}
	for i := range instances.Items {
		reference, hash := instances.Items[i].Status.NodeRef, instances.Items[i].Status.PublicKeyHash
		if reference == nil || hash == "" || hash == r.key {
			continue
		}
		node := &corev1.Node{}
		if err := r.Client.Get(ctx, types.NamespacedName{Name: reference.Name}, node); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return false, fmt.Errorf("read Node %s: %w", reference.Name, err)
		}
		if node.Annotations[v1alpha1.AnnotationPubKeyHash] == hash {
			return true, nil
		}
	}
	return false, nil
}

// replaceNext looks at the whole fleet, and deletes one Machine of it or none.
func (r *Reconciler) replaceNext(ctx context.Context, key sshkey.Key) (ctrl.Result, error) {
	fleet, err := r.readFleet(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	change, err := r.keyChange(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := policy.NextReplacement(fleet.Fleet, change)
	machinesOutdated.Set(float64(len(next.Outdated)))
	r.tell(ctx, fleet, next)
	switch {
	case next.Machine != "":
		return ctrl.Result{RequeueAfter: poll}, r.replace(ctx, fleet, next.Machine)
	case len(next.Outdated) > 0:
		return ctrl.Result{RequeueAfter: poll}, nil
	case len(next.Left) > 0:
		return ctrl.Result{RequeueAfter: leftPoll}, nil
	}
	return ctrl.Result{}, nil
}

// replace deletes a Machine, if it is still exactly the one that was looked at.
func (r *Reconciler) replace(ctx context.Context, fleet fleet, name string) error {
	machine := fleet.machines[name]
	err := r.Client.Delete(ctx, machine, client.Preconditions{UID: &machine.UID, ResourceVersion: &machine.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		log.FromContext(ctx).Info("a Machine has changed before it could be replaced; it is looked at again", "machine", name)
		return nil
	case err != nil:
		return fmt.Errorf("delete Machine %s/%s, whose host does not accept the present SSH key: %w", machine.Namespace, machine.Name, err)
	}
	machinesReplaced.WithLabelValues(causeKey).Inc()
	log.FromContext(ctx).Info("a Machine is replaced: its host was configured with another SSH key than the present one", "machine", name)
	for _, e := range replaced(machine, fleet.instances[name]) {
		r.emit(e)
	}
	return nil
}

// tell says of each Machine that is left or has to wait why that is so, once for each reason.
func (r *Reconciler) tell(ctx context.Context, fleet fleet, next policy.Replacement) {
	told := map[types.UID]string{}
	say := func(name, reason string, e replacementEvent) {
		uid := fleet.machines[name].UID
		told[uid] = reason
		if r.told[uid] != reason {
			log.FromContext(ctx).Info(e.message, "machine", name)
			r.emit(e)
		}
	}
	for name, why := range next.Left {
		say(name, why, left(fleet.machines[name], fleet.instances[name], why))
	}
	if next.Machine == "" && len(next.Outdated) > 0 {
		first := next.Outdated[0]
		say(first, next.Check, waits(fleet.machines[first], fleet.instances[first], next.Message))
	}
	r.told = told
}
