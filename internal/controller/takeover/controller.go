// Package takeover deletes the objects that an operator before version 12 has made in the cluster for itself and for
// its agents, once no host needs them. Package instance takes over its nodes one by one; hosts that were not reached
// yet continue as they are.
package takeover

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

// Reconciler deletes the remains of an operator before version 12. It looks when it starts, and when something that it
// waits for has changed; once nothing is left it sends the API server no requests.
type Reconciler struct {
	// Client reads nodes and instances from its cache.
	Client client.Client
	// Live reads the API server.
	Live      client.Reader
	Namespace string
	// Version is this operator's.
	Version string
	Events  events.EventRecorder

	// cleared is true when nothing was left at the last look. Only one goroutine uses it.
	cleared bool
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	one := queue.Enqueue(ctrl.Request{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("takeover").
		Watches(&corev1.Node{}, one, builder.WithPredicates(queue.Changed(marks))).
		Watches(&v1alpha1.WindowsInstance{}, one, builder.WithPredicates(pinChanged())).
		// A cluster may have no node any more, and what it had them with.
		WatchesRawSource(queue.AtStart()).
		WithOptions(queue.Options()).
		Complete(r)
}

// Reconcile deletes the remains, if no host needs them.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	// The cache may be behind, and is asked only whether it is worth a look.
	needed, err := r.neededBy(ctx, r.Client)
	if needed == "" && err == nil && !r.cleared {
		needed, err = r.neededBy(ctx, r.Live)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if needed != "" {
		r.cleared = false
		log.FromContext(ctx).V(1).Info("keeping the objects that an older version of the operator left in the cluster",
			"because", needed)
		return ctrl.Result{}, nil
	}
	if r.cleared {
		return ctrl.Result{}, nil
	}
	all, err := r.leftovers(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, left := range all {
		if err := r.delete(ctx, left); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.cleared, err = r.clearHostKeys(ctx)
	return ctrl.Result{}, err
}

// neededBy says which host may still depend on what is left; empty when none does.
func (r *Reconciler) neededBy(ctx context.Context, reader client.Reader) (string, error) {
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list Windows nodes: %w", err)
	}
	for i := range nodes.Items {
		if nodeidentity.ServesOlder(&nodes.Items[i], r.Version) {
			return "Node " + nodes.Items[i].Name, nil
		}
	}
	return "", nil
}

// delete deletes one object if it is there, and tells it.
func (r *Reconciler) delete(ctx context.Context, left leftover) error {
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
		return fmt.Errorf("delete %s, which an older version of the operator left: %w", left, err)
	}
	log.FromContext(ctx).Info("deleted an object that an older version of the operator left", "object",
		left.String(), "it was", left.was)
	// Related, so that each is an event of its own and not one more of a series.
	own, _ := recorder.Operator(ctx, r.Live, r.Namespace) // its name is enough
	r.Events.Eventf(own, object, corev1.EventTypeNormal, "LegacyObjectDeleted", "TakeOver",
		"%s of an older version of the operator was deleted, because no node needs it any more. It was %s.", left, left.was)
	return nil
}
