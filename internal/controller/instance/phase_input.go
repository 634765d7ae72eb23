package instance

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/keys"
	"github.com/windows-machine-config/wmco/internal/policy/disruptionpolicy"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
)

// checkEntry refuses an instance whose address or user name cannot be right, before anything is sent anywhere.
func (r *Reconciler) checkEntry(_ context.Context, s *scope) *obstacle {
	spec := s.instance.Spec
	err := hostlist.ValidateAddress(spec.Address)
	if err == nil {
		err = hostlist.ValidateUsername(spec.Username)
	}
	if err == nil {
		return nil
	}
	next := "Correct the Machine " + machineName(spec.Source) + "."
	if s.byoh() {
		next = "Correct the key " + spec.Source.ConfigMapKey + " of ConfigMap windows-instances in namespace " + s.Namespace + ": <IPv4 address or DNS name>: username=<user>."
	}
	return &obstacle{
		condition: v1alpha1.ConditionReachable, reason: v1alpha1.ReasonInvalidEntry, outcome: needsAdministrator,
		message: err.Error(), next: next,
	}
}

func machineName(source v1alpha1.Source) string {
	if source.Machine == nil {
		return ""
	}
	return source.Machine.Namespace + "/" + source.Machine.Name
}

// readKey reads the SSH private key. Its absence or a fault in it is waited for: the Secret is watched.
func (r *Reconciler) readKey(ctx context.Context, s *scope) *obstacle {
	key, err := keys.Read(ctx, r.Client, r.Namespace)
	if err == nil {
		s.key = key
		return nil
	}
	o := &obstacle{
		condition: v1alpha1.ConditionReachable, reason: v1alpha1.ReasonPrivateKeyInvalid, outcome: needsAdministrator,
		message: err.Error(), next: keys.Remedy(r.Namespace),
	}
	switch {
	case errors.Is(err, keys.ErrMissing):
		o.reason = v1alpha1.ReasonPrivateKeyMissing
	case !errors.Is(err, keys.ErrInvalid):
		o.outcome = tryAgain
	}
	return o
}

// readCluster takes the facts of the cluster. They are watched, so a fault is waited for.
func (r *Reconciler) readCluster(_ context.Context, s *scope) *obstacle {
	facts, err := r.Cluster.Current()
	if err != nil {
		var fault *cluster.Error
		if !errors.As(err, &fault) {
			// An operator that has just started has read nothing yet, which says nothing new about a host that has a status.
			s.silent = s.before != ""
			return &obstacle{
				condition: v1alpha1.ConditionSupported, reason: v1alpha1.ReasonInProgress, outcome: wait, keepsTurn: true,
				message: "The cluster's configuration is not known: " + err.Error(),
				next:    "The operator goes on as soon as it has read the cluster's configuration.",
			}
		}
		return &obstacle{
			condition: v1alpha1.ConditionSupported, reason: v1alpha1.ReasonClusterConfigurationInvalid, outcome: needsAdministrator,
			message: "The cluster's configuration cannot be used: " + err.Error(),
			next:    "The operator goes on as soon as the named object is in order.",
		}
	}
	s.cluster = facts
	return nil
}

// readSettings takes the settings of the gate that phases need.
func (r *Reconciler) readSettings(ctx context.Context, s *scope) *obstacle {
	settings, err := r.Gate.Settings(ctx)
	if err != nil {
		// What is wrong with the policy is told on it, and by the gate where it matters.
		settings, _ = disruptionpolicy.Parse(v1alpha1.WindowsDisruptionPolicySpec{})
	}
	s.settings = settings
	return nil
}
