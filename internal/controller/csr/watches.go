package csr

import (
	"context"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
)

// workers is the number of concurrent reconciles, so that one request does not wait for API calls about another.
const workers = 4

// SetupWithManager registers the controller. Requests that exist when the operator starts are treated like new
// ones. A request that precedes the instance or the Node is reconciled again when these appear.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("csr").
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(predicate.NewPredicateFuncs(isPendingKubeletRequest))).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
			node client.Object) []reconcile.Request {
			return r.pendingRequests(ctx, node.GetName())
		}), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return true },
			UpdateFunc: func(event.UpdateEvent) bool { return false },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Watches(&v1alpha1.WindowsInstance{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
			instance client.Object) []reconcile.Request {
			return r.pendingRequests(ctx, confirmedNode(instance).Name)
		}), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return confirmedNode(e.Object).Name != "" },
			UpdateFunc: func(e event.UpdateEvent) bool {
				return confirmedNode(e.ObjectNew).Name != "" && confirmedNode(e.ObjectNew) != confirmedNode(e.ObjectOld)
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: queue.RateLimiter()}).
		Complete(r)
}

// isPendingKubeletRequest reports whether a request is undecided and may have been created by a kubelet.
func isPendingKubeletRequest(object client.Object) bool {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	return ok && isUndecided(csr) && certrequest.IsKubeletSigner(csr.Spec.SignerName) &&
		strings.HasPrefix(csr.Spec.Username, "system:node:")
}

// confirmedNode returns an instance's node, once its claim to the name is confirmed.
func confirmedNode(object client.Object) v1alpha1.NodeReference {
	instance, ok := object.(*v1alpha1.WindowsInstance)
	if !ok || instance.Status.NodeRef == nil || !instance.Status.NodeRef.Confirmed {
		return v1alpha1.NodeReference{}
	}
	return *instance.Status.NodeRef
}

// pendingRequests returns the undecided requests of a node.
func (r *Reconciler) pendingRequests(ctx context.Context, node string) []reconcile.Request {
	requests, err := index.RequestsBy(ctx, r.Client, certrequest.NodeUser(node))
	if err != nil {
		log.FromContext(ctx).Error(err, "list the certificate requests of a node", "node", node)
		return nil
	}
	var pending []reconcile.Request
	for i := range requests {
		if csr := &requests[i]; isUndecided(csr) && certrequest.IsRequestOf(*csr, node) {
			pending = append(pending, reconcile.Request{NamespacedName: types.NamespacedName{Name: csr.Name}})
		}
	}
	return pending
}
