package admission

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// agentsBinding gives the agents the rights of their Role.
func agentsBinding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Agents, Labels: map[string]string{managedByLabel: managedBy}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: Agents},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: v1alpha1.AgentsGroup}},
	}
}

// grant gives the agents their right, and takes away what somebody has added to it.
func (r *Reconciler) grant(ctx context.Context) error {
	object, err := r.compare(ctx, agentsBinding(r.Namespace))
	if err != nil || object == nil {
		return err
	}
	if found, ok := object.found.(*rbacv1.RoleBinding); ok && !equality.Semantic.DeepEqual(found.RoleRef, agentsBinding(r.Namespace).RoleRef) {
		// What a binding refers to cannot be changed. Its end is an event, and then it is made again.
		return r.Revoke(ctx)
	}
	return r.put(ctx, *object)
}

// Revoke takes the agents' right away. It does not go by what is in memory, which may be behind.
func (r *Reconciler) Revoke(ctx context.Context) error {
	err := r.Client.Delete(ctx, agentsBinding(r.Namespace))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete RoleBinding %s/%s, so that no agent may write without its admission policy: %w", r.Namespace, Agents, err)
	}
	return nil
}

// Withhold is for an API server without ValidatingAdmissionPolicies: the agents have no right, and that is told.
func (r *Reconciler) Withhold(ctx context.Context) error {
	if err := r.Revoke(ctx); err != nil {
		return err
	}
	r.tell(ctx, missing())
	return nil
}
