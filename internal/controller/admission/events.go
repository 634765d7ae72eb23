package admission

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/controller/owned"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
)

const action = "KeepPolicies"

func inForce(operator client.Object) recorder.Event {
	return recorder.Normal(operator, nil, "AdmissionPoliciesInForce", action, "The admission policies of the operator are in place.")
}

func notInForce(err error) func(client.Object) recorder.Event {
	return func(operator client.Object) recorder.Event {
		return recorder.Warning(operator, nil, "AdmissionPoliciesNotInForce", action,
			"The admission policies of the operator cannot be put in place: "+err.Error()+
				". Nodes keep working; where a policy is missing, only RBAC limits access. The operator tries again.")
	}
}

// restored reports that an object which was correct was changed or deleted.
func restored(object owned.Object, what string) func(client.Object) recorder.Event {
	return func(operator client.Object) recorder.Event {
		return recorder.Warning(operator, object.Identity, "AdmissionPolicyRestored", action,
			object.String()+" was "+what+". The operator has restored it.")
	}
}
