package instance

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Only the kubelet reports the operating system of its node. The operator neither writes nor reverts these
// labels.
func TestNode_SystemLabelsOfKubeletNotWritten(t *testing.T) {
	labels := map[string]string{corev1.LabelOSStable: "windows", corev1.LabelArchStable: "amd64",
		corev1.LabelWindowsBuild: "10.0.20348", corev1.LabelHostname: machine}
	instance := machineInstance()
	instance.Spec.Node = &v1alpha1.NodeMetadata{Labels: map[string]string{
		corev1.LabelOSStable: "linux", corev1.LabelArchStable: "arm64", corev1.LabelWindowsBuild: "10.0.26100",
		corev1.LabelHostname: "other", "team": "a",
	}}
	x, node := bindNewNode(t, instance)
	check := func(t *testing.T, when string, reported map[string]string) {
		t.Helper()
		for name, want := range reported {
			if got, exists := x.getNode().Labels[name]; exists && got != want {
				t.Errorf("%s: label %s is %q, the kubelet says %q", when, name, got, want)
			}
		}
		if x.getNode().Labels["team"] != "a" {
			t.Errorf("%s: the label that the Machine may set is not there: %v", when, x.getNode().Labels)
		}
	}
	write := func(reported map[string]string) {
		t.Helper()
		node = x.getNode()
		maps.Copy(node.Labels, reported)
		if err := x.Client.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	mark := func() {
		t.Helper()
		s := x.newScope(x.getInstance())
		s.Key = x.key
		if err := x.newDependencies().nodes.Activate(t.Context(), s.Instance, x.getNode(), s.Key.Hash()); err != nil {
			t.Fatal(err)
		}
	}
	check(t, "joined, before the kubelet has said anything", map[string]string{
		corev1.LabelArchStable: "", corev1.LabelWindowsBuild: "", corev1.LabelHostname: "",
	})
	write(labels)
	mark()
	check(t, "proven", labels)
	labels[corev1.LabelWindowsBuild] = "10.0.26100"
	write(labels)
	mark()
	check(t, "after Windows was upgraded in place", labels)
}
