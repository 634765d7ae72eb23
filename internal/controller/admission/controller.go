// Package admission restricts the rights of clients with certificates signed by the operator further than RBAC can,
// with ValidatingAdmissionPolicies. OLM's bundles cannot contain such policies, so the operator creates them.
package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/internal/controller/owned"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

// All rights are restricted by name, including create: see package owned. The API server requires the right to
// delete from a client that changes an owner reference.
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,resourceNames=windows-machine-config-operator-cloud-node-managers;windows-machine-config-operator-kubelets,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",namespace=system,resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=apps,namespace=system,resources=deployments,resourceNames=windows-machine-config-operator,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,namespace=system,resources=events,verbs=create;patch

// checkInterval is the interval between checks of the policies.
const checkInterval = 10 * time.Minute

// Reconciler maintains the policies, and checks all of them in one reconcile. Only one goroutine may use it.
type Reconciler struct {
	Client client.Client
	// Live reads the API server.
	Live client.Reader
	// Namespace is the namespace of the operator.
	Namespace string
	Events    events.EventRecorder

	// correctObjects holds the names of the policies and bindings that were correct at the last check, as used in
	// messages.
	correctObjects map[string]bool
	reported       recorder.OperatorState
}

// SetupWithManager registers the controller. A single request is enqueued at the start.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("admission").WatchesRawSource(queue.AtStart()).
		WithOptions(queue.Options()).Complete(r)
}

// Reconcile creates missing policies and corrects changed ones.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	owner, err := r.getOwnerReference(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if owner == nil {
		// The operator is being uninstalled. Deleting the namespace deletes the policies, and new policies
		// would remain.
		return ctrl.Result{}, nil
	}
	err = r.reconcilePolicies(ctx, *owner)
	if ctx.Err() == nil {
		state, about := "InForce", policiesInstalled
		if err != nil {
			state, about = "NotInForce", policiesFailed(err)
		}
		err = errors.Join(err, r.reported.Emit(ctx, r.Live, r.Namespace, r.Events, state, err == nil, about))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: checkInterval}, nil
}

// getOwnerReference returns the operator's namespace as the owner of the policies, so that the policies are deleted
// with the namespace; nil if the namespace is being deleted. The policies do not block that deletion.
func (r *Reconciler) getOwnerReference(ctx context.Context) (*metav1.OwnerReference, error) {
	namespace := &corev1.Namespace{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: r.Namespace}, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Namespace %s of the operator, the owner of the admission policies: %w",
			r.Namespace, err)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return &metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID}, nil
}

// reconcilePolicies creates and corrects policies and bindings, each independently of the rest.
func (r *Reconciler) reconcilePolicies(ctx context.Context, owner metav1.OwnerReference) error {
	if r.correctObjects == nil {
		r.correctObjects = map[string]bool{}
	}
	keeper := owned.Keeper{Client: r.Client, Live: r.Live}
	var errs []error
	for _, object := range desiredObjects(owner) {
		name := object.String()
		state := owned.Unchanged
		err := queue.Retry(retry.DefaultRetry, apierrors.IsConflict, func() (err error) {
			state, err = keeper.Keep(ctx, object) // the API server writes the status of a policy after each change
			return err
		})
		switch {
		case state == owned.NotServed:
			err = fmt.Errorf("the API server does not have the kind of %s", name)
		case state == owned.Created && r.correctObjects[name]:
			r.emitEvent(ctx, policyRestored(object, "deleted"))
		case state == owned.Corrected && r.correctObjects[name]:
			r.emitEvent(ctx, policyRestored(object, "changed"))
		}
		if err == nil {
			r.correctObjects[name] = true
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *Reconciler) emitEvent(ctx context.Context, about func(*appsv1.Deployment) recorder.Event) {
	deployment, _ := recorder.Operator(ctx, r.Live, r.Namespace) // the name is sufficient
	event := about(deployment)
	log.FromContext(ctx).Info("admission policies", "message", event.Message)
	recorder.Emit(r.Events, event)
}
