package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// awaitReplacement leaves a Machine's host alone that comes to this version of the operator by being replaced. Whether anything on it would
// change is known from the digest of what it is; a release that changes nothing for it moves the annotation only, which was done by now.
func (r *Reconciler) awaitReplacement(ctx context.Context, s *scope) *obstacle {
	if !s.ofMachine() || s.nodeName() == "" {
		return nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !s.released(node) || !s.replaced(node) {
		return nil
	}
	if s.instance.Status.SpecDigest == "" && !isOlder(node) {
		return nil // what it is nobody knows: the host must be asked
	}
	s.works = isReady(node)
	if isOlder(node) {
		s.passWhatNodeSays(node)
	}
	return s.awaitsReplacement()
}

// replaced reports whether the Machine of a node that another version of the operator has configured is to be replaced.
func (s *scope) replaced(node *corev1.Node) bool {
	version := node.Annotations[v1alpha1.AnnotationVersion]
	return s.ofMachine() && s.instance.Spec.UpgradeStrategy == v1alpha1.UpgradeReplace && version != "" && version != s.Version
}

func (s *scope) awaitsReplacement() *obstacle {
	if s.works && s.instance.Status.SpecDigest != "" {
		s.passWhatHeld()
	}
	machine := machineName(s.instance.Spec.Source)
	return &obstacle{
		condition: v1alpha1.ConditionUpToDate, reason: v1alpha1.ReasonAwaitsReplacement, outcome: wait, replaces: true,
		message: "The node was configured by another version of the operator, and its Machine is to be replaced: Machine " + machine + " is deleted when its turn comes.",
		next: "Its MachineSet then makes another one, which this version configures. To have hosts changed in place instead: oc annotate machineset <name> -n " +
			v1alpha1.MachineNamespace + " " + v1alpha1.AnnotationUpgradeStrategy + "=" + string(v1alpha1.UpgradeInPlace),
	}
}
