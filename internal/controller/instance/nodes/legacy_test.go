package nodes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

func TestDropLegacyMarks_KeepsFieldsOfUser(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{v1alpha1.AnnotationVersion: "10.19.0-1a2b3c4",
			v1alpha1.AnnotationDesiredVersion: "10.19.0-1a2b3c4", v1alpha1.AnnotationPubKeyHash: "hash"},
		Labels: map[string]string{},
	}}
	node.Annotations[v1alpha1.AnnotationUsername], node.Annotations[v1alpha1.AnnotationTakenOverFrom] = "encrypted",
		"10.19.0-1a2b3c4"
	node.Labels["a-users"], node.Spec.Unschedulable = "label", true
	dropLegacyMarks(node)
	if len(node.Annotations) != 2 || node.Labels["a-users"] == "" || !node.Spec.Unschedulable {
		t.Errorf("a Node that a user has made unschedulable has %v, %v, unschedulable: %t", node.Annotations, node.Labels,
			node.Spec.Unschedulable)
	}
	node.Labels[v1alpha1.LabelUpgrading] = "true"
	dropLegacyMarks(node)
	if _, locked := node.Labels[v1alpha1.LabelUpgrading]; locked || !node.Spec.Unschedulable {
		t.Errorf("labels %v, unschedulable %t: the label does not say who has cordoned the node", node.Labels, node.Spec.Unschedulable)
	}
}

func TestAdoptCordon_UserCordonNotAdopted(t *testing.T) {
	for name, c := range map[string]struct {
		locked, unschedulable, operators bool
	}{
		"one that was stopped during its upgrade": {true, true, true},
		"one that a user has cordoned":            {false, true, false},
		"one whose drain had not begun":           {true, false, false},
		"one in service":                          {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{}
			node.Spec.Unschedulable = c.unschedulable
			if c.locked {
				node.Labels = map[string]string{v1alpha1.LabelUpgrading: "true"}
			}
			adoptCordon(node, time.Unix(0, 0))
			if IsCordoned(node) != c.operators || nodeidentity.IsDrained(node) || IsDraining(node) {
				t.Errorf("the Node has %v", node.Annotations)
			}
			if uncordonNode(node); node.Spec.Unschedulable != (c.unschedulable && !c.operators) {
				t.Errorf("up to date, it is unschedulable: %t", node.Spec.Unschedulable)
			}
		})
	}
}
