package instance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// maxConcurrent is the maximum number of concurrent reconciles. Jobs do the slow work.
const maxConcurrent = 64

// reconcileTimeout is the timeout of a reconcile. Except for requests to the API server, a reconcile takes
// milliseconds.
const reconcileTimeout = time.Minute

// SetupWithManager registers the controller. clusterChanged receives an event when the facts of the cluster
// change.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, clusterChanged <-chan event.GenericEvent) error {
	all := handler.EnqueueRequestsFromMapFunc(r.allInstances)
	if err := mgr.Add(r.Jobs); err != nil {
		return fmt.Errorf("add the jobs on hosts to the manager: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("instance").
		For(&v1alpha1.WindowsInstance{}, builder.WithPredicates(instanceChanged())).
		Watches(&v1alpha1.WindowsInstance{}, handler.EnqueueRequestsFromMapFunc(r.instancesWithHostKey),
			builder.WithPredicates(hostKeyChanged())).
		Watches(&v1alpha1.WindowsInstance{}, handler.EnqueueRequestsFromMapFunc(r.instancesOnSameHost),
			builder.WithPredicates(sharedHostChanged())).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.nodeToInstances), builder.WithPredicates(nodeChanged())).
		Watches(&corev1.Secret{}, all, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.GetNamespace() == r.Namespace && o.GetName() == sshkeysecret.SecretName
		}))).
		Watches(&v1alpha1.WindowsDisruptionPolicy{}, r.enqueueSlotWaiters()).
		Watches(&v1alpha1.WindowsInstance{}, handler.Funcs{UpdateFunc: r.forgetWritten}).
		Watches(&corev1.Node{}, handler.Funcs{UpdateFunc: r.forgetWritten}).
		WatchesRawSource(source.Channel(clusterChanged, all)).
		WatchesRawSource(source.Func(r.enqueueAfterJobs)).
		WithOptions(r.controllerOptions()).
		Complete(r)
}

// controllerOptions returns the options of the controller.
func (r *Reconciler) controllerOptions() controller.Options {
	options := queue.OptionsOn(r.Clock)
	options.MaxConcurrentReconciles, options.ReconciliationTimeout = maxConcurrent, reconcileTimeout
	return options
}

// enqueueAfterJobs enqueues instances when their jobs end or report progress.
func (r *Reconciler) enqueueAfterJobs(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Jobs.OnEnd(func(name types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: name}) })
	return nil
}

// forgetWritten drops a written object when the cache has the written version, without a reconcile.
func (r *Reconciler) forgetWritten(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	switch seen := e.ObjectNew.(type) {
	case *v1alpha1.WindowsInstance:
		r.sessions.ObserveCached(seen, nodes.IsOlderVersion)
	case *corev1.Node:
		r.written.ObserveCached(seen)
	}
}

// instanceChanged accepts changes of an instance by other clients. An instance that was deleted and recreated
// while the API server was unavailable arrives as an update, possibly without a change of generation or
// annotations.
func instanceChanged() predicate.Predicate {
	remade := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	}}
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		remade)
}

// nodeChanged accepts changes that an instance waits for or reacts to, and drops heartbeats.
func nodeChanged() predicate.Funcs {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Node)
			after, ok2 := e.ObjectNew.(*corev1.Node)
			if !ok || !ok2 {
				return false
			}
			return nodeidentity.IsReady(before) != nodeidentity.IsReady(after) || nodeidentity.HasStartupTaint(before) != nodeidentity.HasStartupTaint(after) ||
				watchedAnnotations(before) != watchedAnnotations(after) || !needsAgentCheck(before) && needsAgentCheck(after) || nodes.IsRebootRequested(before) != nodes.IsRebootRequested(after) ||
				nodes.HasWindowsTaint(before) != nodes.HasWindowsTaint(after) ||
				before.Status.NodeInfo.KernelVersion != after.Status.NodeInfo.KernelVersion ||
				nodes.IsDrainOutdated(before) != nodes.IsDrainOutdated(after) ||
				nodeidentity.IsUninitialized(before) != nodeidentity.IsUninitialized(after) || !maps.Equal(before.Labels, after.Labels)
		},
	}
}

// watchedAnnotations returns the annotations that an instance waits for or maintains.
func watchedAnnotations(node *corev1.Node) [6]string {
	return [6]string{
		node.Annotations[v1alpha1.AnnotationPodSubnet], node.Annotations[v1alpha1.AnnotationInstance],
		node.Annotations[v1alpha1.AnnotationVersion], node.Annotations[v1alpha1.AnnotationPubKeyHash],
		node.Annotations[v1alpha1.AnnotationHostKey], node.Annotations[v1alpha1.AnnotationHostKeyType],
	}
}

// nodeToInstances returns the instances that have claimed the Node's name, and the instance that the Node is bound
// to.
func (r *Reconciler) nodeToInstances(ctx context.Context, node client.Object) []reconcile.Request {
	claimants, err := r.cachedInstances().OfNode(ctx, node.GetName())
	if err != nil {
		return nil
	}
	concerned := requestsFor(claimants, nil)
	bound := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.Namespace,
		Name: node.GetAnnotations()[v1alpha1.AnnotationInstance]}}
	if bound.Name == "" || slices.Contains(concerned, bound) ||
		r.Client.Get(ctx, bound.NamespacedName, &v1alpha1.WindowsInstance{}) != nil {
		return concerned
	}
	return append(concerned, bound)
}

func (r *Reconciler) allInstances(ctx context.Context, _ client.Object) []reconcile.Request {
	var instances v1alpha1.WindowsInstanceList
	if err := r.Client.List(ctx, &instances, client.InNamespace(r.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return requestsFor(instances.Items, nil)
}

// cachedInstances returns a reader of instances in the cache.
func (r *Reconciler) cachedInstances() index.Instances {
	return index.Instances{Cache: r.Client, Namespace: r.Namespace}
}

// requestsFor returns requests for the instances that match concerns; nil for all instances.
func requestsFor(instances []v1alpha1.WindowsInstance, concerns func(*v1alpha1.WindowsInstance) bool) []reconcile.Request {
	var requests []reconcile.Request
	for i := range instances {
		if instance := &instances[i]; concerns == nil || concerns(instance) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(instance)})
		}
	}
	return requests
}
