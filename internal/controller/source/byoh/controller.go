// Package byoh creates WindowsInstances for the entries of the ConfigMap windows-instances: bring-your-own-host
// instances.
package byoh

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/controller/source"
)

// ConfigMapName is the ConfigMap in the operator's namespace that lists hosts: <address>: username=<user>.
const ConfigMapName = "windows-instances"

// +kubebuilder:rbac:groups="",namespace=system,resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=system,resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances,verbs=get;list;watch;create;patch

// Reconciler keeps the WindowsInstances in sync with the ConfigMap.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server whether the operator's namespace is being deleted.
	Live      client.Reader
	Namespace string
	Events    events.EventRecorder
	Clock     clock.WithTicker
	Delays    RemovalDelays

	// reported is the resourceVersion of the ConfigMap with the last reported faults, so that a resync emits no
	// events.
	reported string
	// absentSince is when the ConfigMap was first found absent; zero while it exists.
	absentSince time.Time
	// heldRemovals contains the delayed removals.
	heldRemovals heldRemovals
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	toConfigMap := queue.Enqueue(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: ConfigMapName}})
	return ctrl.NewControllerManagedBy(mgr).
		Named("byoh-source").
		For(&corev1.ConfigMap{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.GetNamespace() == r.Namespace && o.GetName() == ConfigMapName
		}))).
		Watches(&v1alpha1.WindowsInstance{}, toConfigMap, builder.WithPredicates(
			predicate.NewPredicateFuncs(func(o client.Object) bool {
				instance, ok := o.(*v1alpha1.WindowsInstance)
				return ok && isListed(instance)
			}),
			predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}),
		)).
		WithOptions(queue.OptionsOn(r.Clock)).
		Complete(r)
}

// Reconcile creates, changes and removes WindowsInstances. A ConfigMap that stays absent lists no hosts, so that
// all hosts are removed, unless the namespace is being deleted. In this case an administrator uninstalls the
// operator, not the nodes.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
	err := r.Client.Get(ctx, request.NamespacedName, configMap)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("read ConfigMap %s: %w", request.NamespacedName, err)
	}
	absent := apierrors.IsNotFound(err)
	var present v1alpha1.WindowsInstanceList
	if err := r.Client.List(ctx, &present, client.InNamespace(r.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("list WindowsInstances: %w", err)
	}
	if left := r.absenceDelay(ctx, absent); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if absent && len(listedInstances(present.Items)) > 0 {
		if goes, err := r.isNamespaceDeleting(ctx); goes || err != nil {
			return ctrl.Result{}, err
		}
	}

	desired, faults := desiredInstances(r.Namespace, configMap.Data)
	wanted, left := r.holdRemovals(configMap, diffInstances(present.Items, desired), present.Items)
	wanted, beyond := limitCreations(wanted, len(listedInstances(present.Items)))
	faults = append(faults, beyond...)
	var errs []error
	for _, change := range wanted {
		errs = append(errs, r.apply(ctx, configMap, change))
	}
	r.reportFaults(configMap, faults)
	return ctrl.Result{RequeueAfter: left}, errors.Join(errs...)
}

// absenceDelay returns the time until the ConfigMap's absence counts; zero if it counts already, or the ConfigMap
// exists.
func (r *Reconciler) absenceDelay(ctx context.Context, absent bool) time.Duration {
	if !absent {
		r.absentSince = time.Time{}
		return 0
	}
	now := r.Clock.Now()
	if r.absentSince.IsZero() {
		r.absentSince = now
		log.FromContext(ctx).V(1).Info("the ConfigMap does not exist; its hosts are not changed during the grace period",
			"configMap", ConfigMapName, "time", r.Delays.Absence.String())
	}
	return max(r.Delays.Absence-now.Sub(r.absentSince), 0)
}

// holdRemovals filters out the removals that must wait, and returns the time until they may proceed.
func (r *Reconciler) holdRemovals(configMap *corev1.ConfigMap, all []source.Change,
	present []v1alpha1.WindowsInstance) ([]source.Change, time.Duration) {
	now, before := r.Clock.Now(), r.heldRemovals
	r.heldRemovals = before.findHeldRemovals(all, present, now)
	left := r.heldRemovals.remainingDelay(now, r.Delays.Removal)
	switch {
	case left > 0 && !before.isEqual(r.heldRemovals):
		recorder.Emit(r.Events, removalsDelayed(configMap, r.heldRemovals, now.Add(left)))
	case len(r.heldRemovals.names) == 0 && before.remainingDelay(now, r.Delays.Removal) > 0:
		recorder.Emit(r.Events, removalsCanceled(configMap, before))
	}
	if left <= 0 {
		return all, 0
	}
	return r.heldRemovals.releasedChanges(all), left
}

// isNamespaceDeleting reports whether the operator's namespace is being deleted.
func (r *Reconciler) isNamespaceDeleting(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{}
	err := r.Live.Get(ctx, types.NamespacedName{Name: r.Namespace}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Namespace %s to check whether ConfigMap %s is deleted with it: %w",
			r.Namespace, ConfigMapName, err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}

func (r *Reconciler) apply(ctx context.Context, configMap *corev1.ConfigMap, change source.Change) error {
	inForce, err := change.Apply(ctx, r.Client)
	switch {
	case err != nil:
		return fmt.Errorf("key %s of ConfigMap %s: %w", change.After.Spec.Source.ConfigMapKey, ConfigMapName, err)
	case inForce && change.ChangesStateTo(v1alpha1.DesiredStateRemoved):
		recorder.Emit(r.Events, hostUnlisted(configMap, change.After))
	}
	return nil
}

// maxReportedEntries is the maximum number of invalid entries with an event each. The instances report all of them.
const maxReportedEntries = 50

// reportFaults emits events about invalid entries once for each version of the ConfigMap.
func (r *Reconciler) reportFaults(configMap *corev1.ConfigMap, faults []fault) {
	if configMap.ResourceVersion == r.reported {
		return
	}
	for _, fault := range faults[:min(len(faults), maxReportedEntries)] {
		recorder.Emit(r.Events, invalidEntry(configMap, fault))
	}
	if more := len(faults) - maxReportedEntries; more > 0 {
		recorder.Emit(r.Events, moreInvalidEntries(configMap, more))
	}
	r.reported = configMap.ResourceVersion
}
