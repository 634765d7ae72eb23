package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
)

// entry is the phase that checks what the source says.
type entry struct {
	namespace string // of the operator
}

// run refuses an instance whose address or user name cannot be right, before anything is sent anywhere. An entry that
// cannot be read has no user name: the source has recorded its fault.
func (p entry) run(_ context.Context, s *scope.Scope) *result.Result {
	spec := s.Instance.Spec
	err := hostlist.ValidateAddress(spec.Address)
	if err == nil {
		err = hostlist.ValidateUsername(spec.Username)
	}
	if err == nil {
		return nil
	}
	message := err.Error()
	if fault := s.Instance.Annotations[v1alpha1.AnnotationEntryFault]; fault != "" && spec.Username == "" {
		message = fault
	}
	next := "Correct the Machine " + nodes.MachineName(spec.Source) + "."
	if s.BYOH() {
		next = "Correct the key " + spec.Source.ConfigMapKey + " of ConfigMap windows-instances in namespace " + p.namespace +
			": <IPv4 address or DNS name>: username=<user>."
	}
	return &result.Result{
		Condition: v1alpha1.ConditionReachable, Reason: v1alpha1.ReasonInvalidEntry, Outcome: result.NeedsAdministrator,
		Message: message, Next: next,
	}
}
