package hostjobs

import (
	"encoding/base64"
	"fmt"
	"net/netip"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// TargetOf returns the connection target of an instance, with the required host key. announced is the fingerprint
// of the host key that the Machine announces for the first contact; "" for none.
func TargetOf(instance *v1alpha1.WindowsInstance, key sshkey.Key, cluster nodespec.Cluster, announced string) (remote.Target, *result.Result) {
	target := remote.Target{
		Instance: instance.Name, Namespace: instance.Namespace,
		Address: instance.Spec.Address, User: instance.Spec.Username, Key: key,
		NoHostAt: func(address netip.Addr) string { return nodename.NoHostAt(address, cluster) },
	}
	if host := instance.Status.Host; host != nil {
		target.LastReachedAddress = host.LastReachedAddress
	}
	if nodename.IsAPIServerName(target.Address, cluster) {
		return target, &result.Result{
			Condition: v1alpha1.ConditionReachable, Reason: v1alpha1.ReasonInvalidEntry, Outcome: result.Blocked,
			Message:    target.Address + " is the cluster's API server, not a Windows host.",
			NextAction: "Correct the entry. The operator does not connect to this address.",
		}
	}
	pinned := instance.Status.HostKey
	if pinned == nil {
		expected, err := nodeidentity.ExpectedHostKeys(instance.Annotations[v1alpha1.AnnotationExpectedHostKey], announced)
		if err != nil {
			return target, &result.Result{
				Condition: v1alpha1.ConditionReachable, Reason: string(remote.ReasonHostKeyUnexpected),
				Message:    "The expected host key cannot be determined: " + err.Error() + ".",
				NextAction: "Correct or remove the annotation. Until then, the operator does not connect to the host.",
			}
		}
		target.Expected = expected
		return target, nil
	}
	data, err := base64.StdEncoding.DecodeString(pinned.Key)
	if err != nil {
		return target, result.FromAPIError(v1alpha1.ConditionReachable, "read the pinned host key",
			fmt.Errorf("decode the pinned host key for host %s: %w", instance.Spec.Address, err))
	}
	target.HostKey = &remote.HostKey{Type: pinned.Type, Data: data}
	return target, nil
}
