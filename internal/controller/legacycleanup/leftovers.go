package legacycleanup

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// The names of windows-services-<version> are unpredictable, so the right to delete ConfigMaps covers all
// ConfigMaps in the operator's namespace. All other objects are named.
// +kubebuilder:rbac:groups="",namespace=system,resources=configmaps,verbs=get;list;delete
// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=windows-instance-config-daemon,verbs=get;delete
// +kubebuilder:rbac:groups="",namespace=system,resources=serviceaccounts,resourceNames=windows-instance-config-daemon,verbs=get;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,namespace=system,resources=roles;rolebindings,resourceNames=windows-instance-config-daemon,verbs=get;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles;clusterrolebindings,resourceNames=windows-instance-config-daemon;system-wicd-nodes,verbs=get;delete

// Names of the objects of legacy operators.
const (
	agentName      = "windows-instance-config-daemon" // of the agent: account, credentials and rights
	agentsName     = "system-wicd-nodes"              // the rights of all agents with their own certificates
	servicesPrefix = "windows-services-"              // followed by a version: the services that agents configured
	lockName       = v1alpha1.OperatorName + "-lock"
	hostKeysName   = "windows-ssh-host-keys"
)

// leftover is an object to delete, and the former purpose of the object.
type leftover struct {
	kind            schema.GroupVersionKind
	namespace, name string
	purpose         string
}

func (l leftover) String() string { return l.kind.Kind + " " + l.name }

// listLeftovers returns all possible leftovers except the host keys: rights first, then credentials, then the rest.
func (r *Reconciler) listLeftovers(ctx context.Context) ([]leftover, error) {
	core, rbac := corev1.SchemeGroupVersion.WithKind, rbacv1.SchemeGroupVersion.WithKind
	all := []leftover{
		{rbac("ClusterRoleBinding"), "", agentName, "the right of every host to change every Node"},
		{rbac("ClusterRoleBinding"), "", agentsName, "the right of every host with a certificate to change every Node"},
		{rbac("RoleBinding"), r.Namespace, agentName, "the right of hosts to read the operator's namespace"},
		{core("Secret"), r.Namespace, agentName, "a token that never expires, on every host"},
		{core("ServiceAccount"), r.Namespace, agentName, "the user names for logging in to hosts"},
		{rbac("ClusterRole"), "", agentName, "the rights of the agent on hosts"},
		{rbac("ClusterRole"), "", agentsName, "the rights of agents with certificates"},
		{rbac("Role"), r.Namespace, agentName, "the rights of the agent on hosts in the operator's namespace"},
		{core("ConfigMap"), r.Namespace, lockName, "the lock for leader election"},
	}
	services, err := r.listServiceConfigs(ctx)
	return append(all, services...), err
}

// listServiceConfigs returns the ConfigMaps with the legacy operator's configuration of its agents.
func (r *Reconciler) listServiceConfigs(ctx context.Context) ([]leftover, error) {
	var list corev1.ConfigMapList
	if err := r.Live.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("list ConfigMaps in namespace %s: %w", r.Namespace, err)
	}
	var found []leftover
	for i := range list.Items {
		if isLegacyServices(&list.Items[i]) {
			found = append(found, leftover{corev1.SchemeGroupVersion.WithKind("ConfigMap"), r.Namespace, list.Items[i].Name,
				"the services that the agent of that version configured"})
		}
	}
	return found, nil
}

// isLegacyServices reports whether a ConfigMap is the legacy operator's windows-services-<version>, and not a
// user's with such a name. The legacy ConfigMap is immutable, and always has two keys.
func isLegacyServices(object *corev1.ConfigMap) bool {
	_, services := object.Data["services"]
	_, files := object.Data["files"]
	return strings.HasPrefix(object.Name, servicesPrefix) && object.Immutable != nil &&
		*object.Immutable && services && files
}

// clearHostKeys deletes the host keys recorded by the legacy operator, once each listed host with a recorded
// key is pinned by an instance. Otherwise a host that was not reached since would be trusted on first use
// again. clearHostKeys reports whether nothing is left.
func (r *Reconciler) clearHostKeys(ctx context.Context) (bool, error) {
	noted := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: hostKeysName}, noted)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read ConfigMap %s: %w", hostKeysName, err)
	}
	var instances v1alpha1.WindowsInstanceList
	if err := r.Live.List(ctx, &instances, client.InNamespace(r.Namespace)); err != nil {
		return false, fmt.Errorf("list WindowsInstances: %w", err)
	}
	for i := range instances.Items {
		if instance := &instances.Items[i]; instance.Status.HostKey == nil && mayHaveRecordedKey(instance.Spec.Address, noted.Data) {
			return false, nil
		}
	}
	return true, r.deleteLeftover(ctx, leftover{corev1.SchemeGroupVersion.WithKind("ConfigMap"), r.Namespace, hostKeysName,
		"the host keys, which are now in the status of the WindowsInstances"})
}

// mayHaveRecordedKey reports whether any entry may belong to an address. The legacy operator also recorded DNS names
// under their IP addresses.
func mayHaveRecordedKey(address string, noted map[string]string) bool {
	if _, ok := noted[address]; ok {
		return true
	}
	_, err := netip.ParseAddr(address)
	return err != nil && len(noted) > 0
}
