package nodes

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// setOwnedFields sets the metadata that the operator owns on the Node of an instance: the labels of a Windows node and
// of the instance's source, the Windows taint, the binding, and the pinned host key. The rest of the Node is
// unchanged.
func setOwnedFields(node *corev1.Node, instance *v1alpha1.WindowsInstance) {
	listed := instance.Spec.Source.ConfigMapKey != ""
	setAll(&node.Labels, nodespec.NodeLabels(listed))
	if listed {
		setAll(&node.Labels, map[string]string{v1alpha1.LabelWorker: ""})
	}
	setSourceLabels(node, instance.Spec.Node)
	setAll(&node.Annotations, map[string]string{v1alpha1.AnnotationInstance: instance.Name})
	if key := instance.Status.HostKey; key != nil {
		setAll(&node.Annotations, map[string]string{v1alpha1.AnnotationHostKey: key.Key,
			v1alpha1.AnnotationHostKeyType: key.Type})
	}
	windows := windowsTaint()
	if present := taintLike(node, &windows); present != nil {
		present.Value = windows.Value
	} else {
		node.Spec.Taints = append(node.Spec.Taints, windows)
	}
}

// setVerifiedAnnotations restores on a verified Node the annotations that the operator recorded at the verification.
// Nodes of legacy operators are not changed.
func setVerifiedAnnotations(node *corev1.Node, status *v1alpha1.WindowsInstanceStatus) {
	if nodeidentity.HasStartupTaint(node) || IsLegacy(node) {
		return
	}
	for name, value := range map[string]string{
		v1alpha1.AnnotationVersion: status.Version, v1alpha1.AnnotationPubKeyHash: status.PublicKeyHash,
	} {
		if node.Annotations[name] == "" && value != "" {
			setAll(&node.Annotations, map[string]string{name: value})
		}
	}
}

// kubeletLabels are labels that the kubelet sets from its host, or the operator from the source. A Machine
// cannot override these labels.
var kubeletLabels = []string{
	corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelHostname, corev1.LabelWindowsBuild,
	v1alpha1.LabelOSID, v1alpha1.LabelBYOH,
}

// setSourceLabels sets the labels from the source on the Node. Other labels are unchanged.
func setSourceLabels(node *corev1.Node, metadata *v1alpha1.NodeMetadata) {
	if metadata == nil {
		return
	}
	for name, value := range metadata.Labels {
		if !slices.Contains(kubeletLabels, name) {
			setAll(&node.Labels, map[string]string{name: value})
		}
	}
}

func windowsTaint() corev1.Taint {
	taint := nodespec.WindowsTaint()
	return corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect)}
}

// taintLike returns the Node's taint with the same key and effect, or nil. A Node has at most one such taint.
func taintLike(node *corev1.Node, taint *corev1.Taint) *corev1.Taint {
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].MatchTaint(taint) {
			return &node.Spec.Taints[i]
		}
	}
	return nil
}

// HasWindowsTaint reports whether a Node has the Windows taint, which keeps away pods without a toleration for Windows.
func HasWindowsTaint(node *corev1.Node) bool {
	windows := windowsTaint()
	present := taintLike(node, &windows)
	return present != nil && present.Value == windows.Value
}

// withOwnedFields returns a copy of the Node with all metadata that the operator owns.
func withOwnedFields(node *corev1.Node, instance *v1alpha1.WindowsInstance) *corev1.Node {
	after := node.DeepCopy()
	setOwnedFields(after, instance)
	setVerifiedAnnotations(after, &instance.Status)
	return after
}

// HasDrift reports whether the Node bound to the instance lacks metadata that the operator owns. HasDrift reads the
// cache and sends no request.
func (n Nodes) HasDrift(ctx context.Context, instance *v1alpha1.WindowsInstance) (bool, error) {
	node, err := n.getBoundNode(ctx, instance)
	if err != nil || node == nil {
		return false, err
	}
	return len(listDifferences(node, withOwnedFields(node, instance))) > 0, nil
}

// getBoundNode returns the Node bound to the instance from the cache; nil if there is none.
func (n Nodes) getBoundNode(ctx context.Context, instance *v1alpha1.WindowsInstance) (*corev1.Node, error) {
	if scope.NodeNameOf(instance) == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	if err := n.Client.Get(ctx, types.NamespacedName{Name: scope.NodeNameOf(instance)}, node); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !nodeidentity.IsBound(instance, node) {
		return nil, nil
	}
	return node, nil
}

// RevertDrift corrects metadata that the operator owns on the Node bound to the instance and that another writer
// has changed. RevertDrift returns the Node and the names of the corrected metadata. A Node that another instance
// owns is not changed.
func (n Nodes) RevertDrift(ctx context.Context, s *scope.Scope) (*corev1.Node, []string, error) {
	instance := s.Instance
	node, err := n.Get(ctx, instance)
	if err != nil || node == nil || !nodeidentity.IsBound(instance, node) {
		return nil, nil, err
	}
	after := withOwnedFields(node, instance)
	changed := listDifferences(node, after)
	if len(changed) == 0 {
		return node, nil, nil
	}
	if owns, err := n.Owns(ctx, s, node); err != nil || !owns {
		return node, nil, err
	}
	return node, changed, n.Patch(ctx, node, after)
}

// listDifferences names the metadata of the second state of a Node that is missing or different in the first.
func listDifferences(before, after *corev1.Node) []string {
	names := listChangedEntries("label", before.Labels, after.Labels)
	names = append(names, listChangedEntries("annotation", before.Annotations, after.Annotations)...)
	for i := range after.Spec.Taints {
		taint := &after.Spec.Taints[i]
		if present := taintLike(before, taint); present == nil || present.Value != taint.Value {
			names = append(names, "taint "+taint.ToString())
		}
	}
	return names
}

func listChangedEntries(kind string, before, after map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if value, there := before[name]; !there || value != after[name] {
			names = append(names, kind+" "+name)
		}
	}
	return names
}
