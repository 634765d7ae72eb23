package admission

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/windows-machine-config/wmco/internal/controller/owned"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

const action = "KeepPolicies"

func policiesInstalled(operator *appsv1.Deployment) recorder.Event {
	return recorder.Normal(operator, nil, "AdmissionPoliciesInstalled", action, "The admission policies of the operator are installed.")
}

func policiesFailed(err error) func(*appsv1.Deployment) recorder.Event {
	return func(operator *appsv1.Deployment) recorder.Event {
		return recorder.Warning(operator, nil, "AdmissionPoliciesFailed", action,
			"The admission policies of the operator cannot be installed: "+err.Error()+
				". Nodes keep working; where a policy is missing, only RBAC limits access. The operator retries.")
	}
}

// policyRestored reports that a correct object was changed or deleted.
func policyRestored(object owned.Object, what string) func(*appsv1.Deployment) recorder.Event {
	return func(operator *appsv1.Deployment) recorder.Event {
		return recorder.Warning(operator, object.Identity, "AdmissionPolicyRestored", action,
			object.String()+" was "+what+". The operator has restored it.")
	}
}
