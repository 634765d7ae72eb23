// Package admission restricts, by ValidatingAdmissionPolicies, rights that RBAC cannot restrict further: the operator's
// own, and those of clients whose certificates it signs. OLM's bundles cannot contain such policies, so the operator
// makes them.
package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// All by name, also the creations: see put. The right to delete is what the API server wants of who changes an owner.
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,resourceNames=windows-machine-config-operator;windows-machine-config-operator-cloud-node-managers;windows-machine-config-operator-kubelets,verbs=list;watch;create;patch;update;delete
// +kubebuilder:rbac:groups="",namespace=system,resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=apps,namespace=system,resources=deployments,resourceNames=windows-machine-config-operator,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,namespace=system,resources=events,verbs=create;patch

// settle is the least time between two writes: what somebody else keeps changing back is not written more often.
const settle = 3 * time.Second

// Reconciler keeps the policies correct. It compares all of them at once. Only one goroutine may use it.
type Reconciler struct {
	Client client.Client
	// Live reads the API server.
	Live client.Reader
	// Namespace is the operator's own.
	Namespace string
	Events    events.EventRecorder
	Clock     clock.PassiveClock

	// present reads what there is, by the name of what is read: each from the cache of its name.
	present map[string]client.Reader
	// kept are those policies and bindings that were found right, so that one which no longer is was changed by somebody.
	kept map[string]bool
	// written is when a policy or a binding was last written.
	written time.Time
	// told is the reason of the last event about how it stands; empty when none was needed, or all is well again.
	told string
}

// Reconcile makes missing policies and corrects changed ones.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	owner, err := r.owner(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if owner == nil {
		// The operator is being uninstalled: what it made goes with its namespace, and would only be made to be left behind.
		return ctrl.Result{}, nil
	}
	after, err := r.keep(ctx, *owner)
	if ctx.Err() == nil && (err != nil || after == 0) {
		r.tell(ctx, inForce(err))
	}
	return ctrl.Result{RequeueAfter: after}, err
}

// owner is what the policies belong to: the operator's namespace, so that they go when it does; nil when it goes. It
// does not block its deletion.
func (r *Reconciler) owner(ctx context.Context) (*metav1.OwnerReference, error) {
	namespace := &corev1.Namespace{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: r.Namespace}, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Namespace %s, the operator's own, which its admission policies belong to: %w",
			r.Namespace, err)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return &metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID}, nil
}

// keep writes those policies and bindings that are not right, each by itself. It returns when to look again; zero when
// nothing is under way.
func (r *Reconciler) keep(ctx context.Context, owner metav1.OwnerReference) (time.Duration, error) {
	wrong, err := r.wrong(ctx, owner)
	if err != nil {
		return 0, err
	}
	if len(wrong) == 0 {
		return 0, nil
	}
	if rest := settle - r.Clock.Since(r.written); rest > 0 {
		return rest, nil
	}
	var errs []error
	for _, object := range wrong {
		err := r.put(ctx, object)
		if err == nil {
			r.written = r.Clock.Now()
		}
		errs = append(errs, err)
	}
	return settle, errors.Join(errs...)
}

// differing is an object that is not as it should be.
type differing struct {
	wanted client.Object
	// found is the present one; nil when there is none.
	found client.Object
}

// String names the object for people.
func (d differing) String() string {
	return d.wanted.GetObjectKind().GroupVersionKind().Kind + " " + d.wanted.GetName()
}

// wrong returns the policies and bindings that are not as they should be, and tells of those that were.
func (r *Reconciler) wrong(ctx context.Context, owner metav1.OwnerReference) ([]differing, error) {
	if r.kept == nil {
		r.kept = map[string]bool{}
	}
	var all []differing
	for _, g := range Guards(r.Namespace) {
		for _, wanted := range []client.Object{g.Policy, g.Binding} {
			wanted.SetOwnerReferences([]metav1.OwnerReference{owner})
			object, err := r.compare(ctx, wanted)
			if err != nil {
				return nil, err
			}
			if object == nil {
				r.kept[differing{wanted: wanted}.String()] = true
				continue
			}
			all = append(all, *object)
			if r.kept[object.String()] {
				delete(r.kept, object.String())
				r.tellChanged(ctx, *object)
			}
		}
	}
	return all, nil
}

// compare reads the present object, and returns nil when it is as wanted.
func (r *Reconciler) compare(ctx context.Context, wanted client.Object) (*differing, error) {
	found := emptyOf(wanted)
	err := r.present[wanted.GetName()].Get(ctx, client.ObjectKeyFromObject(wanted), found)
	if apierrors.IsNotFound(err) {
		return &differing{wanted: wanted}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", differing{wanted: wanted}, err)
	}
	if alike(wanted, found) {
		return nil, nil
	}
	return &differing{wanted: wanted, found: found}, nil
}

// put writes an object. A new one is made by an apply and not by a create: that has the name in its URL, so that RBAC
// can bind the right to it.
func (r *Reconciler) put(ctx context.Context, object differing) error {
	var err error
	if object.found == nil {
		err = r.apply(ctx, object.wanted)
	} else {
		wanted, _ := object.wanted.DeepCopyObject().(client.Object)
		wanted.SetResourceVersion(object.found.GetResourceVersion())
		wanted.SetAnnotations(object.found.GetAnnotations())
		wanted.SetLabels(withLabels(object.found.GetLabels(), object.wanted.GetLabels()))
		err = r.Client.Update(ctx, wanted)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // somebody was faster, and that is an event
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", object, err)
	}
	log.FromContext(ctx).Info("written", "object", object.String())
	return nil
}
