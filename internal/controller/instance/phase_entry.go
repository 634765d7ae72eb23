package instance

import (
	"context"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
)

// entryValidationPhase is the phase that validates the entry of the source.
type entryValidationPhase struct {
	namespace string // of the operator
}

// reconcile refuses an instance with an invalid address or user name, before anything is sent. An unreadable entry has
// no user name, and the source has recorded the fault.
func (p entryValidationPhase) reconcile(_ context.Context, s *scope.Scope) *result.Result {
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
	if s.IsBYOH() {
		next = "Correct the key " + spec.Source.ConfigMapKey + " of ConfigMap windows-instances in namespace " + p.namespace +
			": <IPv4 address or DNS name>: username=<user>."
	}
	return &result.Result{
		Condition: v1alpha1.ConditionReachable, Reason: v1alpha1.ReasonInvalidEntry, Outcome: result.Blocked,
		Message: message, NextAction: next,
	}
}
