package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

// standing is whether the policies are in force, in words. Its reason is empty when there is nothing to say.
type standing struct {
	reason, eventType, message string
}

const (
	reasonInForce    = "AdmissionPoliciesInForce"
	reasonNotInForce = "AdmissionPoliciesNotInForce"
	reasonMissing    = "AdmissionPoliciesNotServed"
	reasonChanged    = "AdmissionPolicyRestored"
)

func inForce(err error) standing {
	if err == nil {
		return standing{reasonInForce, corev1.EventTypeNormal, "The admission policies of the operator are in place."}
	}
	return standing{reasonNotInForce, corev1.EventTypeWarning,
		"The admission policies of the operator cannot be put in place: " + err.Error() +
			". Nodes keep working; where a policy is missing, only RBAC limits access. The operator tries again."}
}

func missing() standing {
	return standing{reasonMissing, corev1.EventTypeWarning,
		"The API server does not have ValidatingAdmissionPolicies (Kubernetes 1.30 and later does). " +
			"Only RBAC limits the operator, kubelets and cloud-node-manager. Nodes keep working."}
}

// tell says how it stands when that has changed. What is well from the beginning is not worth an event.
func (r *Reconciler) tell(ctx context.Context, s standing) {
	if s.reason == r.told || s.reason == reasonInForce && r.told == "" {
		return
	}
	r.told = s.reason
	if s.reason == reasonInForce {
		r.told = ""
	}
	r.emit(ctx, s, nil)
}

// TellNotServed says that the API server has no ValidatingAdmissionPolicies.
func (r *Reconciler) TellNotServed(ctx context.Context) error {
	r.tell(ctx, missing())
	return nil
}

// tellChanged says that somebody has changed or deleted an object that was right.
func (r *Reconciler) tellChanged(ctx context.Context, object differing) {
	message := object.String() + " was deleted. The operator creates it again."
	if object.found != nil {
		message = object.String() + " was changed. The operator restores it."
	}
	r.emit(ctx, standing{reasonChanged, corev1.EventTypeWarning, message}, object.wanted)
}

func (r *Reconciler) emit(ctx context.Context, s standing, related client.Object) {
	log.FromContext(ctx).Info("admission policies", "reason", s.reason, "message", s.message)
	deployment := recorder.Deployment(ctx, r.Live, r.Namespace, Operator)
	if related == nil {
		r.Events.Eventf(deployment, nil, s.eventType, s.reason, "KeepPolicies", "%s", s.message)
		return
	}
	r.Events.Eventf(deployment, related, s.eventType, s.reason, "KeepPolicies", "%s", s.message)
}
