package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

func TestAccess(t *testing.T) {
	c := plain.Cluster(t)
	admin := newClientset(t, c.Config)

	t.Run("nobody reads secrets", func(t *testing.T) {
		_, err := newClientset(t, rest.AnonymousClientConfig(c.Config)).CoreV1().Secrets("kube-system").List(t.Context(),
			metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want forbidden", err)
		}
	})

	t.Run("a service account has the rights it was given and no other", func(t *testing.T) {
		namespace := clustertest.Namespace(t, c)
		createNodeReader(t, admin, namespace)
		config, err := c.ServiceAccountConfig(t.Context(), namespace, "reader")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := c.WriteKubeconfig(path, config); err != nil {
			t.Fatal(err)
		}
		if config, err = clientcmd.BuildConfigFromFlags("", path); err != nil {
			t.Fatal(err)
		}
		reader := newClientset(t, config)
		if _, err := reader.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("list nodes: %v", err)
		}
		if _, err := reader.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("list secrets: got %v, want forbidden", err)
		}
	})

	t.Run("a service account that does not exist is an error that names it", func(t *testing.T) {
		_, err := c.ServiceAccountConfig(t.Context(), "default", "nobody")
		if err == nil || !strings.Contains(err.Error(), "default/nobody") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a node does not give itself a role", func(t *testing.T) {
		createNode(t, admin, "role-taker")
		config := rest.CopyConfig(c.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:role-taker", Groups: []string{"system:nodes", "system:authenticated"}}
		patch := []byte(`{"metadata":{"labels":{"node-role.kubernetes.io/worker":""}}}`)
		_, err := newClientset(t, config).CoreV1().Nodes().Patch(t.Context(), "role-taker", types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want forbidden", err)
		}
	})

	t.Run("requests are in the audit log", func(t *testing.T) {
		createNode(t, admin, "audited")
		log, err := os.ReadFile(c.AuditLog)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, `"verb":"create"`) && strings.Contains(line, `"name":"audited"`) {
				return
			}
		}
		t.Errorf("%s has no line for the creation of the node", c.AuditLog)
	})
}

func createNodeReader(t *testing.T, admin kubernetes.Interface, namespace string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	if _, err := admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-reads-nodes"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "reader"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func createNode(t *testing.T, admin kubernetes.Interface, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
