package keys

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=cloud-private-key,verbs=get;list;watch

// Reconciler tells by an event on the Secret when its private key cannot be used, once for each version of the Secret.
type Reconciler struct {
	Client    client.Client
	Namespace string
	Events    events.EventRecorder

	reported string
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("keys").
		For(&corev1.Secret{}, builder.WithPredicates(predicate.NewPredicateFuncs(r.IsPrivateKey))).
		Complete(r)
}

// IsPrivateKey tells whether an object is the Secret with the private key.
func (r *Reconciler) IsPrivateKey(o client.Object) bool {
	return o.GetNamespace() == r.Namespace && o.GetName() == SecretName
}

// Reconcile reports a private key that cannot be used. Instances read the key themselves.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, request.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("read Secret %s: %w", request.NamespacedName, err))
	}
	if secret.ResourceVersion == r.reported {
		return ctrl.Result{}, nil
	}
	r.reported = secret.ResourceVersion
	key, err := parse(secret)
	if err != nil {
		log.FromContext(ctx).Info("the SSH private key cannot be used", "reason", err.Error())
		r.Events.Eventf(secret, nil, corev1.EventTypeWarning, "PrivateKeyInvalid", "ReadPrivateKey", "%s. %s", err.Error(), Remedy(r.Namespace))
		return ctrl.Result{}, nil
	}
	log.FromContext(ctx).Info("SSH private key read", "algorithm", key.Algorithm, "publicKeyHash", key.Hash())
	return ctrl.Result{}, nil
}
