package admission_test

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/admission"
)

func TestCloudNodeManagers_MayChangeOwnNodeOnly(t *testing.T) {
	f := newFixture(t, "")
	f.createObjects(windowsNode(ownNode), windowsNode(otherNode), linuxNode("worker-0"))
	const group = "system:cloud-node-managers"
	manager := f.newClientAs("system:cloud-node-manager:"+ownNode, group)
	ctx := t.Context()
	label, status := newMergePatch(`{"metadata": {"labels": {"topology.kubernetes.io/zone": "1"}}}`),
		newMergePatch(`{"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}}`)

	t.Run("what it is for", func(t *testing.T) {
		requireNoError(t, manager.Patch(ctx, windowsNode(ownNode), label))
		requireNoError(t, manager.Status().Patch(ctx, windowsNode(ownNode), status))
		requireNoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error { // node controllers of Kubernetes also write
			node := &corev1.Node{}
			requireNoError(t, manager.Get(ctx, client.ObjectKey{Name: ownNode}, node))
			node.Spec.ProviderID = "azure:///subscriptions/x"
			return manager.Update(ctx, node)
		}))
	})
	for _, other := range []string{otherNode, "worker-0"} {
		t.Run("Node "+other, func(t *testing.T) {
			expectDenied(t, manager.Patch(ctx, windowsNode(other), label), admission.CloudNodeManagers)
			expectDenied(t, manager.Status().Patch(ctx, windowsNode(other), status), admission.CloudNodeManagers)
		})
	}
	t.Run("what the operator notes on its Node", func(t *testing.T) {
		expectDenied(t, manager.Patch(ctx, windowsNode(ownNode), newMergePatch(`{"metadata": {"annotations": {%q: "stolen"}}}`,
			v1alpha1.AnnotationInstance)), admission.CloudNodeManagers)
	})
	t.Run("that its Node is a Windows node", func(t *testing.T) {
		expectDenied(t, manager.Patch(ctx, windowsNode(ownNode), newMergePatch(`{"metadata": {"labels": {%q: "linux"}}}`,
			corev1.LabelOSStable)), admission.CloudNodeManagers)
	})
	t.Run("new Nodes, and the end of its own, where it has the right", func(t *testing.T) {
		f := f.forSubtest(t)
		const name = "all-of-nodes"
		f.createObjects(
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
				Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"},
					Verbs: []string{"create", "delete"}}}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}}},
		)
		f.waitUntil("the right is given", func(ctx context.Context) (bool, error) {
			return apierrors.IsNotFound(f.newClientAs("somebody", group).Delete(ctx, windowsNode("no-such-node"))), nil
		})
		expectDenied(t, manager.Create(ctx, windowsNode("win-new")), admission.CloudNodeManagers)
		expectDenied(t, manager.Delete(ctx, windowsNode(ownNode)), admission.CloudNodeManagers)
	})
	t.Run("others of the group are not concerned", func(t *testing.T) {
		linux := f.newClientAs("system:serviceaccount:kube-system:cloud-node-manager", group)
		requireNoError(t, linux.Patch(ctx, linuxNode("worker-0"), label))
	})
}

// A policy that refuses every evaluated request reveals which requests are evaluated.
func TestKubelets_PolicyNotEvaluatedForLinuxNodes(t *testing.T) {
	f := newFixture(t, "")
	f.createObjects(windowsNode(ownNode), linuxNode("worker-0"))
	const name = "refuses-all"
	var strict []client.Object
	for _, guard := range admission.Guards() {
		if guard.Policy.Name == admission.Kubelets {
			guard.Policy.Name, guard.Binding.Name, guard.Binding.Spec.PolicyName = name, name, name
			guard.Policy.Spec.Validations = []admissionv1.Validation{{Expression: "false"}}
			strict = append(strict, guard.Policy, guard.Binding)
		}
	}
	f.createObjects(strict...)
	ready := newMergePatch(`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
	windows, linux := f.newClientAs("system:node:"+ownNode, "system:nodes"), f.newClientAs("system:node:worker-0", "system:nodes")
	f.waitUntil("the policy is in force", func(ctx context.Context) (bool, error) {
		err := windows.Status().Patch(ctx, windowsNode(ownNode), ready)
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
	requireNoError(t, linux.Status().Patch(t.Context(), linuxNode("worker-0"), ready))
	requireNoError(t, linux.Patch(t.Context(), linuxNode("worker-0"),
		newMergePatch(`{"metadata": {"labels": {"kubernetes.io/arch": "arm64"}}}`)))

	// The next test uses the same API server, which enforces a deleted policy for some time.
	for _, object := range strict {
		requireNoError(t, f.admin.Delete(t.Context(), object))
	}
	f.waitUntil("the policy is no longer in force", func(ctx context.Context) (bool, error) {
		return windows.Status().Patch(ctx, windowsNode(ownNode), ready) == nil, nil
	})
}

func TestKubelets_MayNotWriteOperatorAnnotations(t *testing.T) {
	f := newFixture(t, "")
	marked := windowsNode(ownNode)
	marked.Annotations = map[string]string{v1alpha1.AnnotationInstance: "instance",
		v1alpha1.AnnotationHostKey: "key", "theirs": "before"}
	f.createObjects(marked, linuxNode("worker-0"))
	kubelet := f.newClientAs("system:node:"+ownNode, "system:nodes")
	ctx := t.Context()

	for what, patch := range map[string]client.Patch{
		"whose its Node is":          newMergePatch(`{"metadata": {"annotations": {%q: "another"}}}`, v1alpha1.AnnotationInstance),
		"that it is nobody's":        newMergePatch(`{"metadata": {"annotations": {%q: null}}}`, v1alpha1.AnnotationInstance),
		"which version it has":       newMergePatch(`{"metadata": {"annotations": {%q: "99.0.0"}}}`, v1alpha1.AnnotationVersion),
		"that there are none at all": newMergePatch(`{"metadata": {"annotations": null}}`),
		"one among others": newMergePatch(`{"metadata": {"annotations": {"theirs": "after", %q: "another"}}}`,
			v1alpha1.AnnotationHostKey),
		"one by way of the status": newMergePatch(`{"metadata": {"annotations": {%q: "another"}}, "status": {"phase": "Running"}}`,
			v1alpha1.AnnotationHostKey),
		"one with an empty new value": newMergePatch(`{"metadata": {"annotations": {%q: ""}}}`, v1alpha1.AnnotationHostKey),
	} {
		t.Run(what, func(t *testing.T) {
			expectDenied(t, kubelet.Patch(ctx, windowsNode(ownNode), patch), admission.Kubelets)
			expectDenied(t, kubelet.Status().Patch(ctx, windowsNode(ownNode), patch), admission.Kubelets)
		})
	}
	// The operator may change and delete Windows nodes only: a host could otherwise protect its Node and pods
	// from deletion.
	for what, patch := range map[string]client.Patch{
		"that it is a Linux node":        newMergePatch(`{"metadata": {"labels": {%q: "linux"}}}`, corev1.LabelOSStable),
		"that it is of no system":        newMergePatch(`{"metadata": {"labels": {%q: null}}}`, corev1.LabelOSStable),
		"that it has no labels at all":   newMergePatch(`{"metadata": {"labels": null}}`),
		"its system in another spelling": newMergePatch(`{"metadata": {"labels": {%q: "Windows"}}}`, corev1.LabelOSStable),
		"its system among other labels of it": newMergePatch(`{"metadata": {"labels": {"kubernetes.io/arch": "amd64", %q: ""}}}`,
			corev1.LabelOSStable),
	} {
		t.Run(what, func(t *testing.T) {
			expectDenied(t, kubelet.Patch(ctx, windowsNode(ownNode), patch), admission.Kubelets)
			expectDenied(t, kubelet.Status().Patch(ctx, windowsNode(ownNode), patch), admission.Kubelets)
		})
	}
	t.Run("nor on a Linux node, to hold up a host that is to join", func(t *testing.T) {
		linux := f.newClientAs("system:node:worker-0", "system:nodes")
		expectDenied(t, linux.Patch(ctx, linuxNode("worker-0"), newMergePatch(`{"metadata": {"annotations": {%q: "instance"}}}`,
			v1alpha1.AnnotationInstance)), admission.Kubelets)
	})
	t.Run("nor when it registers", func(t *testing.T) {
		registering := f.newClientAs("system:node:win-new", "system:nodes")
		node := windowsNode("win-new")
		node.Annotations = map[string]string{v1alpha1.AnnotationInstance: "instance"}
		expectDenied(t, registering.Create(ctx, node), admission.Kubelets)
		node.Annotations = map[string]string{"theirs": "before"}
		requireNoError(t, registering.Create(ctx, node))
		requireNoError(t, f.admin.Delete(ctx, node))
	})
	t.Run("but all that is its own", func(t *testing.T) {
		requireNoError(t, kubelet.Patch(ctx, windowsNode(ownNode), newMergePatch(`{"metadata": {"annotations": {"theirs": "after"}}}`)))
		requireNoError(t, kubelet.Patch(ctx, windowsNode(ownNode),
			newMergePatch(`{"metadata": {"labels": {"kubernetes.io/arch": "amd64", %q: "windows"}}}`, corev1.LabelOSStable)))
		requireNoError(t, kubelet.Status().Patch(ctx, windowsNode(ownNode),
			newMergePatch(`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)))
		bare := f.newClientAs("system:node:worker-0", "system:nodes")
		requireNoError(t, bare.Patch(ctx, linuxNode("worker-0"), newMergePatch(`{"metadata": {"labels": {%q: "linux"}}}`,
			corev1.LabelOSStable)))
		requireNoError(t, bare.Status().Patch(ctx, linuxNode("worker-0"),
			newMergePatch(`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)))
	})
}
