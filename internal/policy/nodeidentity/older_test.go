package nodeidentity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// legacyNodeOf returns a Node as left by legacy operators.
func legacyNodeOf(name, address string, change func(*corev1.Node)) *corev1.Node {
	return nodeNamed(name, func(n *corev1.Node) {
		n.UID = "uid-of-win"
		n.Labels[corev1.LabelOSStable], n.Labels[v1alpha1.LabelBYOH] = "windows", "true"
		n.Annotations[v1alpha1.AnnotationVersion], n.Annotations[v1alpha1.AnnotationPubKeyHash] = "10.19.0-1a2b3c4", "abc"
		n.Annotations[v1alpha1.AnnotationHostKey] = "key-1"
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name},
			{Type: corev1.NodeInternalIP, Address: address}}
		if change != nil {
			change(n)
		}
	})
}

func TestIsLegacyNode(t *testing.T) {
	for name, c := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"one with the version of an older operator": {legacyNodeOf("win", "10.0.0.8", nil), true},
		"one whose agent was cleaned up, which takes the version away": {legacyNodeOf("win", "10.0.0.8", func(n *corev1.Node) {
			delete(n.Annotations, v1alpha1.AnnotationVersion)
		}), true},
		"not one that an instance has": {legacyNodeOf("win", "10.0.0.8", func(n *corev1.Node) {
			n.Annotations[v1alpha1.AnnotationInstance] = "entry"
		}), false},
		"not a Linux node that version 2.0 has annotated": {legacyNodeOf("win", "10.0.0.8", func(n *corev1.Node) {
			n.Labels[corev1.LabelOSStable] = "linux"
		}), false},
		"not a Windows node that no operator has configured": {nodeNamed("win", func(n *corev1.Node) {
			n.Labels[corev1.LabelOSStable] = "windows"
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsLegacyNode(c.node); got != c.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

func TestNeedsOtherVersion(t *testing.T) {
	bound := func(annotations map[string]string) *corev1.Node {
		return nodeNamed("win", func(n *corev1.Node) {
			n.Labels[corev1.LabelOSStable], n.Annotations[v1alpha1.AnnotationInstance] = "windows", "entry"
			for name, value := range annotations {
				n.Annotations[name] = value
			}
		})
	}
	for name, c := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"one that was not taken over": {legacyNodeOf("win", "10.0.0.8", nil), true},
		"one that was taken over and waits": {bound(map[string]string{v1alpha1.AnnotationVersion: "10.19.0-1a2b3c4"}),
			true},
		"one whose old agent may still do its work": {bound(map[string]string{v1alpha1.AnnotationDesiredVersion: "10.19.0-1a2b3c4"}), true},
		"not one that is up to date":                {bound(map[string]string{v1alpha1.AnnotationVersion: "12.0.0"}), false},
		"not one that joins":                        {bound(nil), false},
		"not one that is nobody's": {nodeNamed("win", func(n *corev1.Node) {
			n.Labels[corev1.LabelOSStable] = "windows"
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NeedsOtherVersion(c.node, "12.0.0"); got != c.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

func nodeNamed(name string, change func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{},
		Annotations: map[string]string{}}}
	if change != nil {
		change(node)
	}
	return node
}
