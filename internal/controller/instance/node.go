package instance

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// bindNode labels the Node and binds it to the instance. What its source wants it to carry from the beginning is written with the binding,
// and so once for each registration.
func (s *scope) bindNode(ctx context.Context, node *corev1.Node) error {
	after := node.DeepCopy()
	if s.byoh() {
		setAll(&after.Labels, map[string]string{v1alpha1.LabelWorker: "", v1alpha1.LabelBYOH: "true"})
	}
	s.keepLabels(after)
	key := s.instance.Status.HostKey
	setAll(&after.Annotations, map[string]string{
		v1alpha1.AnnotationInstance: s.instance.Name,
		v1alpha1.AnnotationHostKey:  key.Key, v1alpha1.AnnotationHostKeyType: key.Type,
	})
	first := node.Annotations[v1alpha1.AnnotationInstance] == ""
	if first {
		s.addTaints(after)
	}
	s.instance.Status.NodeRef.UID = string(node.UID)
	if err := s.patchNode(ctx, node, after); err != nil {
		return err
	}
	if first {
		s.emit(nodeJoined(s.instance, node))
	}
	return nil
}

// kubeletsLabels are what the kubelet says of its host, or the operator of its source. A Machine's labels do not change them.
var kubeletsLabels = []string{
	corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelHostname, corev1.LabelWindowsBuild, v1alpha1.LabelOSID, v1alpha1.LabelBYOH,
}

// keepLabels puts the labels on the Node that its source wants there. Others stay.
func (s *scope) keepLabels(node *corev1.Node) {
	metadata := s.instance.Spec.Node
	if metadata == nil {
		return
	}
	for name, value := range metadata.Labels {
		if !slices.Contains(kubeletsLabels, name) {
			setAll(&node.Labels, map[string]string{name: value})
		}
	}
}

// addTaints puts the taints on the Node that its source wants there. Of one key and effect there is only one taint; that of the Node stays.
func (s *scope) addTaints(node *corev1.Node) {
	metadata := s.instance.Spec.Node
	if metadata == nil {
		return
	}
	for _, taint := range metadata.Taints {
		if !slices.ContainsFunc(node.Spec.Taints, func(present corev1.Taint) bool { return present.MatchTaint(&taint) }) {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
}

// markNode writes the version and key annotations and the labels that its source wants, and takes away what kept pods off while the node
// was not proven.
func (s *scope) markNode(ctx context.Context, node *corev1.Node) error {
	after := node.DeepCopy()
	s.keepLabels(after)
	setAll(&after.Annotations, map[string]string{
		v1alpha1.AnnotationVersion:    s.Version,
		v1alpha1.AnnotationPubKeyHash: s.key.Hash(),
	})
	var taints []corev1.Taint
	for _, taint := range after.Spec.Taints {
		if taint.Key != v1alpha1.TaintNotReady {
			taints = append(taints, taint)
		}
	}
	after.Spec.Taints = taints
	uncordon(after)
	if s.instance.Status.RequestedReboot != nil {
		delete(after.Annotations, v1alpha1.AnnotationRebootRequired)
	}
	dropOlderMarks(after)
	if err := s.patchNode(ctx, node, after); err != nil {
		return err
	}
	// Not before: with the annotation still there, a restart that nobody remembers is one that is wanted.
	s.instance.Status.RequestedReboot = nil
	return nil
}

// patchNode writes what differs, and nothing when nothing does.
func (s *scope) patchNode(ctx context.Context, before, after *corev1.Node) error {
	patch := client.MergeFrom(before)
	if !reflect.DeepEqual(before.Spec, after.Spec) {
		// Taints are replaced as a whole: others write them too.
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	if reflect.DeepEqual(before, after) {
		return nil
	}
	if data, err := patch.Data(after); err == nil && string(data) == "{}" {
		return nil
	}
	if err := s.Client.Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("patch Node %s: %w", before.Name, err)
	}
	return nil
}

func setAll(into *map[string]string, values map[string]string) {
	if *into == nil {
		*into = map[string]string{}
	}
	for name, value := range values {
		(*into)[name] = value
	}
}
