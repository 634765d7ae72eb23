package sshkeysecret

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=cloud-private-key,verbs=get;list;watch

// platformPollInterval is the interval between checks of the cluster facts, in memory, until they are known.
const platformPollInterval = 2 * time.Second

// ClusterSource provides the facts of the cluster.
type ClusterSource interface {
	// Current returns the facts of the last read, or the reason why they cannot be used.
	Current() (nodespec.Cluster, error)
}

// Reconciler keeps the user data in sync with the private key, and reports changes and an unusable key by events on
// the Secret of the key. It runs one reconcile at a time.
type Reconciler struct {
	Client    client.Client
	Namespace string
	Events    events.EventRecorder
	Cluster   ClusterSource

	// exists reports whether a namespace exists and accepts new objects.
	exists func(ctx context.Context, namespace string) (bool, error)
	// reported is the version of the Secret with reported faults.
	reported recorder.Once[string]
	// userDataByNamespace is the user data that was written or found correct, by namespace. After a restart of the
	// operator, a restored Secret is reported as a new one.
	userDataByNamespace map[string][]byte
	// refused contains the reports about Secrets that cannot be corrected, by namespace.
	refused recorder.Once[string]
}

// SetupWithManager registers the controller. Secrets are watched through the manager's cache, which must contain
// the Secrets of SecretCache.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	privateKey := queue.Enqueue(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: r.Namespace, Name: SecretName}})
	namespaces, err := newNamespaceCaches(mgr)
	if err != nil {
		return err
	}
	r.exists = namespaces.hasNamespace
	b := ctrl.NewControllerManagedBy(mgr).
		Named("keys").
		Watches(&corev1.Secret{}, privateKey, builder.WithPredicates(predicate.NewPredicateFuncs(r.IsRelevant)))
	for _, cache := range namespaces {
		b = b.WatchesRawSource(source.Kind[client.Object](cache, &corev1.Namespace{}, privateKey))
	}
	return b.WithOptions(queue.Options()).Complete(r)
}

// IsPrivateKey reports whether an object is the Secret with the private key.
func (r *Reconciler) IsPrivateKey(o client.Object) bool {
	return o.GetNamespace() == r.Namespace && o.GetName() == SecretName
}

// IsRelevant reports whether a Secret holds the private key or user data.
func (r *Reconciler) IsRelevant(o client.Object) bool {
	return r.IsPrivateKey(o) || isUserData(o)
}

// Reconcile updates the user data to match the private key. Without a usable key the user data is unchanged, so
// that new Machines are as reachable as existing ones. Instances read the key themselves.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, request.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("read Secret %s: %w", request.NamespacedName, err))
	}
	key, err := parsePrivateKey(secret)
	r.reportKeys(ctx, secret, key, err)
	if err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // It is reported; another Secret is an event.
	}
	cluster, err := r.Cluster.Current()
	if err != nil {
		// The format of the user data depends on the platform.
		return ctrl.Result{RequeueAfter: platformPollInterval}, nil //nolint:nilerr // It is reported elsewhere.
	}
	script, err := userdata.Generate(cluster.Platform, key.Signer().PublicKey())
	if err != nil {
		return ctrl.Result{}, err
	}
	var errs []error
	for _, namespace := range userDataNamespaces {
		errs = append(errs, r.ensureUserData(ctx, secret, namespace, script))
	}
	return ctrl.Result{}, errors.Join(errs...)
}

// reportKeys reports on the keys in the Secret, once for each version.
func (r *Reconciler) reportKeys(ctx context.Context, secret *corev1.Secret, key sshkey.Key, err error) {
	if !r.reported.IsNew(secret.Name, secret.ResourceVersion) {
		return
	}
	if err != nil {
		log.FromContext(ctx).Info("the SSH private key cannot be used", "reason", err.Error())
		recorder.Emit(r.Events, privateKeyInvalid(secret, err))
		return
	}
	log.FromContext(ctx).Info("SSH private key read", "algorithm", key.Algorithm, "publicKeyHash", key.Hash())
	if _, _, err := parsePreviousKey(secret); err != nil {
		log.FromContext(ctx).Info("the previous SSH private key cannot be used", "reason", err.Error())
		recorder.Emit(r.Events, previousKeyInvalid(secret, err))
	}
}
