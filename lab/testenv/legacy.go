package testenv

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LegacyKind is a generation of legacy operators (before version 12), by their method of configuring hosts.
type LegacyKind string

const (
	// LegacyDocker is the generation of WMCB, until version 5: pods ran in Docker, and no agent stayed on the host.
	LegacyDocker LegacyKind = "Docker"
	// LegacyBootstrapper is version 6, between the two generations: WMCB as before, pods in containerd, and still no
	// permanent agent.
	LegacyBootstrapper LegacyKind = "bootstrapper"
	// LegacyContainerd is the generation of WICD, an agent that stays on the host and reverts foreign changes.
	LegacyContainerd LegacyKind = "containerd"
)

// Version returns a version of that generation, in its original form.
func (k LegacyKind) Version() string {
	switch k {
	case LegacyDocker:
		return "3.1.0-5d6e7f8"
	case LegacyBootstrapper:
		return "6.0.0-9e8d7c6"
	}
	return "10.19.0-1a2b3c4"
}

// canRegisterNode reports whether the kubelet of that generation is a program of the lab, which creates its own Node.
func (k LegacyKind) canRegisterNode() bool { return k != LegacyDocker }

// Names of objects of legacy operators.
const (
	legacyAgentAccount = "windows-instance-config-daemon"
	legacyAgentGroup   = "system:wicd-nodes"
	legacyAgentRights  = "system-wicd-nodes"
	legacyLock         = "windows-machine-config-operator-lock"
	legacyHostKeys     = "windows-ssh-host-keys"
)

// LegacyClusterObjects returns the cluster objects of a legacy operator of the generation of WICD, except objects of
// users and objects that every version has.
func LegacyClusterObjects(namespace, version string) []client.Object {
	metaInNamespace := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	account := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: legacyAgentAccount}}
	role := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch", "update"}},
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"},
			Verbs: []string{"create", "get", "list", "watch"}},
	}
	owner := map[string]string{"app.kubernetes.io/managed-by": "windows-machine-config-operator"}
	hostKeys := &corev1.ConfigMap{ObjectMeta: metaInNamespace(legacyHostKeys)}
	hostKeys.Labels = owner
	token := &corev1.Secret{ObjectMeta: metaInNamespace(legacyAgentAccount), Type: corev1.SecretTypeServiceAccountToken}
	token.Annotations = map[string]string{corev1.ServiceAccountNameKey: legacyAgentAccount}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metaInNamespace(legacyAgentAccount)},
		token,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: legacyAgentAccount}, Rules: rules},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: legacyAgentRights}, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: legacyAgentAccount},
			RoleRef: role(legacyAgentAccount), Subjects: account},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: legacyAgentRights}, RoleRef: role(legacyAgentRights),
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: legacyAgentGroup}}},
		&rbacv1.RoleBinding{ObjectMeta: metaInNamespace(legacyAgentAccount), RoleRef: role(legacyAgentAccount), Subjects: account},
		legacyServices(namespace, version),
		hostKeys,
		&corev1.ConfigMap{ObjectMeta: metaInNamespace(legacyLock)},
	}
}

// legacyServices returns the input of WICD for a version: services with their order, and variables.
func legacyServices(namespace, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "windows-services-" + version},
		Immutable:  ptr.To(true),
		Data: map[string]string{
			"services": `[{"name":"containerd","path":"C:\\k\\containerd\\containerd.exe --config C:\\k\\containerd\\containerd_conf.toml","bootstrap":true,"priority":0},` +
				`{"name":"kubelet","path":"C:\\k\\kube-log-runner.exe -log-file=C:\\var\\log\\kubelet\\kubelet.log C:\\k\\kubelet.exe","dependencies":["containerd"],"bootstrap":true,"priority":1}]`,
			"files":                  `[]`,
			"watchedEnvironmentVars": `["HTTP_PROXY","HTTPS_PROXY","NO_PROXY"]`,
		},
	}
}

// SeedLegacyCluster creates the cluster objects of a legacy operator of the generation of WICD, after InstallOperator.
// Close deletes the remaining objects.
func (r *Environment) SeedLegacyCluster(ctx context.Context, version string) error {
	for _, object := range LegacyClusterObjects(r.Namespace(), cmp.Or(version, LegacyContainerd.Version())) {
		if err := r.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("make %T %s of an older operator: %w", object, object.GetName(), err)
		}
		r.onClose(func() error { return client.IgnoreNotFound(r.Client.Delete(context.WithoutCancel(ctx), object)) })
	}
	return nil
}

// RecordLegacyHostKeys records host keys as legacy operators do for hosts that are not nodes yet: base64 by address.
func (r *Environment) RecordLegacyHostKeys(ctx context.Context, keys map[string]string) error {
	noted := &corev1.ConfigMap{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace(), Name: legacyHostKeys}, noted); err != nil {
		return fmt.Errorf("note host keys: %w", err)
	}
	if noted.Data == nil {
		noted.Data = map[string]string{}
	}
	maps.Copy(noted.Data, keys)
	if err := r.Client.Update(ctx, noted); err != nil {
		return fmt.Errorf("note host keys: %w", err)
	}
	return nil
}
