// Package legacycleanup deletes the cluster objects that a legacy operator (before version 12) created for itself
// and its agents, once no host needs these objects. Package instance adopts the nodes one by one; hosts that
// are not adopted yet continue unchanged.
package legacycleanup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=windowsmachineconfig.openshift.io,namespace=system,resources=windowsinstances,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,namespace=system,resources=deployments,resourceNames=windows-machine-config-operator,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,namespace=system,resources=events,verbs=create;patch

// Reconciler deletes the leftovers of a legacy operator. It reconciles at the start of the operator, and after a
// change of a Node or an instance that may end the need for leftovers. Once nothing is left, no requests are sent to
// the API server.
type Reconciler struct {
	// Client reads nodes and instances from the cache.
	Client client.Client
	// Live reads the API server.
	Live      client.Reader
	Namespace string
	// Version is the version of this operator.
	Version string
	Events  events.EventRecorder

	// cleared is true if the last reconcile found no leftovers. Only one goroutine uses this field.
	cleared bool
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	one := queue.Enqueue(ctrl.Request{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("takeover").
		Watches(&corev1.Node{}, one, builder.WithPredicates(queue.Changed(versionAnnotations))).
		Watches(&v1alpha1.WindowsInstance{}, one, builder.WithPredicates(pinChanged())).
		// The cluster may have no nodes any more, but still the leftovers.
		WatchesRawSource(queue.AtStart()).
		WithOptions(queue.Options()).
		Complete(r)
}

// Reconcile deletes the leftovers once no host needs any.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	// The cache may be stale, and only decides whether a request is worthwhile.
	needed, err := r.findDependentNode(ctx, r.Client)
	if needed == "" && err == nil && !r.cleared {
		needed, err = r.findDependentNode(ctx, r.Live)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if needed != "" {
		r.cleared = false
		log.FromContext(ctx).V(1).Info("keeping the objects of the legacy operator",
			"because", needed)
		return ctrl.Result{}, nil
	}
	if r.cleared {
		return ctrl.Result{}, nil
	}
	all, err := r.listLeftovers(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, left := range all {
		if err := r.deleteLeftover(ctx, left); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.cleared, err = r.clearHostKeys(ctx)
	return ctrl.Result{}, err
}

// findDependentNode returns a host that may still depend on the leftovers; empty if none does.
func (r *Reconciler) findDependentNode(ctx context.Context, reader client.Reader) (string, error) {
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list Windows nodes: %w", err)
	}
	for i := range nodes.Items {
		if nodeidentity.NeedsOtherVersion(&nodes.Items[i], r.Version) {
			return "Node " + nodes.Items[i].Name, nil
		}
	}
	return "", nil
}

// deleteLeftover deletes one existing object, and emits an event.
func (r *Reconciler) deleteLeftover(ctx context.Context, left leftover) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(left.kind)
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: left.namespace, Name: left.name}, object)
	if err == nil {
		uid := object.GetUID()
		err = r.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s of the legacy operator: %w", left, err)
	}
	log.FromContext(ctx).Info("deleted an object of the legacy operator", "object",
		left.String(), "purpose", left.purpose)
	// The related object makes each event separate, not part of a series.
	own, _ := recorder.Operator(ctx, r.Live, r.Namespace) // the name is sufficient
	r.Events.Eventf(own, object, corev1.EventTypeNormal, "LegacyObjectDeleted", "DeleteLegacyObject",
		"%s of the legacy operator was deleted, because no node needs it anymore. It was %s.", left, left.purpose)
	return nil
}
