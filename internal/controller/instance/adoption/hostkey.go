package adoption

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// +kubebuilder:rbac:groups="",namespace=system,resources=configmaps,resourceNames=windows-ssh-host-keys,verbs=get

// hostKeysConfigMap is the ConfigMap with the host keys that legacy operators recorded for hosts that are not
// nodes yet. Each entry contains an address and a key in base64.
const hostKeysConfigMap = "windows-ssh-host-keys"

// ImportHostKey adopts the host key that a legacy operator pinned, so that the first connection is
// authenticated: nothing is sent to a host with another key.
func (a *Adoption) ImportHostKey(ctx context.Context, s *scope.Scope) *result.Result {
	older, err := a.legacyNodes(ctx, s)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReachable, "find the Nodes of the legacy operator", err)
	}
	noted, err := a.readRecordedHostKeys(ctx)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReachable, "read the host keys of the legacy operator", err)
	}
	key, address := "", ""
	if len(noted) > 0 || slices.ContainsFunc(older, hasPinnedHostKey) {
		var pending *result.Result
		if address, pending = a.addressOf(s); pending != nil {
			return pending
		}
	}
	if address != "" {
		key = nodeHostKey(older, address)
	}
	if key == "" {
		key = recordedHostKey(noted, s.Instance.Spec.Address, address)
	}
	if key == "" {
		return nil
	}
	pin, err := hostjobs.ParseHostKey(key)
	if err != nil {
		return &result.Result{
			Condition: v1alpha1.ConditionReachable, Reason: hostjobs.ReasonHostKeyChanged,
			Message: fmt.Sprintf("The host key that the legacy operator recorded for %s is invalid: %v",
				s.Instance.Spec.Address, err),
			NextAction: fmt.Sprintf("Remove the entry from ConfigMap %s, or remove annotation %s from the host's Node; the operator then pins the key that the host presents. Until then, the operator does not connect to the host.",
				hostKeysConfigMap, v1alpha1.AnnotationHostKey),
		}
	}
	s.Instance.Status.HostKey = pin
	a.Events.Emit(status.HostKeyImportedEvent(s.Instance))
	return nil
}

// readRecordedHostKeys returns the entries of the legacy operator's ConfigMap; none if it does not exist.
func (a *Adoption) readRecordedHostKeys(ctx context.Context) (map[string]string, error) {
	noted := &corev1.ConfigMap{}
	err := a.Live.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: hostKeysConfigMap}, noted)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", hostKeysConfigMap, err)
	}
	return noted.Data, nil
}

// recordedHostKey returns the key of the first address with a recorded key.
func recordedHostKey(noted map[string]string, addresses ...string) string {
	for _, address := range addresses {
		if key := noted[address]; address != "" && key != "" {
			return key
		}
	}
	return ""
}

// nodeHostKey returns the host key on the Node with the given address. If Nodes with this address have different
// keys, nodeHostKey returns no key.
func nodeHostKey(older []corev1.Node, address string) string {
	key := ""
	for i := range older {
		pinned := older[i].Annotations[v1alpha1.AnnotationHostKey]
		if pinned == "" || !slices.Contains(nodeidentity.InternalIPs(older[i].Status.Addresses), address) {
			continue
		}
		if key != "" && key != pinned {
			return ""
		}
		key = pinned
	}
	return key
}

func hasPinnedHostKey(node corev1.Node) bool {
	return node.Annotations[v1alpha1.AnnotationHostKey] != ""
}

// addressOf returns the IPv4 address of the host; empty if it is unknown. A name is resolved by the same
// resolver as for SSH.
func (a *Adoption) addressOf(s *scope.Scope) (string, *result.Result) {
	if _, err := netip.ParseAddr(s.Instance.Spec.Address); err == nil {
		return s.Instance.Spec.Address, nil
	}
	if s.Host.HasOutcomeExcept(hostjobs.KindResolve) {
		return "", nil
	}
	// The connect phase reports why a host is unreachable.
	address, pending, _ := s.Host.Resolve(a.Dial)
	return address, pending
}
