package instance

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// bindNewNode binds the Node registered by the kubelet of the instance, and returns the Node.
func bindNewNode(t *testing.T, instance *v1alpha1.WindowsInstance) (*trial, *corev1.Node) {
	t.Helper()
	instance.Status = joinedInProgress().Status
	x := newTrial(t, instance, registeredNode())
	if err := x.newDependencies().nodes.Bind(t.Context(), instance, x.getNode()); err != nil {
		t.Fatal(err)
	}
	return x, x.getNode()
}

func formatTaints(node *corev1.Node) []string {
	var keys []string
	for _, taint := range node.Spec.Taints {
		keys = append(keys, taint.Key+"="+taint.Value+":"+string(taint.Effect))
	}
	slices.Sort(keys)
	return keys
}

//
func TestNode_WorkerLabelDependsOnSource(t *testing.T) {
	for name, c := range map[string]struct {
		source       v1alpha1.Source
		labels       map[string]string
		worker, byoh bool
	}{
		"a Machine with the label": {machineInstance().Spec.Source, map[string]string{v1alpha1.LabelWorker: ""}, true,
			false},
		"not a Machine without it":        {machineInstance().Spec.Source, map[string]string{"role": "batch"}, false, false},
		"not a Machine without any label": {machineInstance().Spec.Source, nil, false, false},
		"not a Machine that says to be a BYOH": {machineInstance().Spec.Source, map[string]string{v1alpha1.LabelBYOH: "true"},
			false, false},
		"the ConfigMap windows-instances": {v1alpha1.Source{ConfigMapKey: "10.0.128.7"}, nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			instance := machineInstance()
			instance.Spec.Source = c.source
			if c.labels != nil {
				instance.Spec.Node = &v1alpha1.NodeMetadata{Labels: c.labels}
			}
			_, node := bindNewNode(t, instance)
			_, worker := node.Labels[v1alpha1.LabelWorker]
			_, byoh := node.Labels[v1alpha1.LabelBYOH]
			if worker != c.worker || byoh != c.byoh {
				t.Errorf("labels are %v", node.Labels)
			}
		})
	}
}

//
func TestNode_LabelsOfMachineKept(t *testing.T) {
	x := newTrial(t)
	instance := machineInstance()
	instance.Spec.Node = &v1alpha1.NodeMetadata{Labels: map[string]string{"zone": "a", corev1.LabelOSStable: "linux"}}
	x.asNode(instance, x.key.Hash())
	x.reconcile()
	node := x.getNode()
	if node.Labels["zone"] != "a" {
		t.Fatalf("labels are %v", node.Labels)
	}
	if node.Labels[corev1.LabelOSStable] != "windows" {
		t.Error("a Machine says what runs on its host")
	}
	delete(node.Labels, "zone")
	node.Labels["mine"] = "x"
	if err := x.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	instance, _ = x.reconcile()
	if node = x.getNode(); node.Labels["zone"] != "a" || node.Labels["mine"] != "x" {
		t.Errorf("after a hand has changed them, labels are %v", node.Labels)
	}
	x.changeSpec(instance, func(i *v1alpha1.WindowsInstance) { i.Spec.Node.Labels = map[string]string{"rack": "7"} })
	before := maps.Clone(node.Labels)
	x.reconcile()
	before["rack"] = "7"
	if node = x.getNode(); !maps.Equal(node.Labels, before) {
		t.Errorf("after the Machine has changed, labels are %v, want %v", node.Labels, before)
	}
	version := node.ResourceVersion
	if x.reconcile(); x.getNode().ResourceVersion != version || x.countDials() > 0 {
		t.Errorf("a pass with nothing to do writes, or has made %d connections", x.countDials())
	}
}

func TestNode_TaintsOfMachineSetAtJoin(t *testing.T) {
	instance := machineInstance()
	instance.Spec.Node = &v1alpha1.NodeMetadata{Taints: []corev1.Taint{
		{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule},
		{Key: v1alpha1.TaintNotReady, Value: "again", Effect: corev1.TaintEffectNoSchedule},
	}}
	x, node := bindNewNode(t, instance)
	want := []string{"gpu=yes:NoSchedule", "os=Windows:NoSchedule", v1alpha1.TaintNotReady + "=:NoSchedule"}
	if got := formatTaints(node); !slices.Equal(got, want) {
		t.Fatalf("taints are %q, want %q", got, want)
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "gpu" })
	if err := x.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := x.newDependencies().nodes.Bind(t.Context(), instance, x.getNode()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(formatTaints(x.getNode()), " "); strings.Contains(got, "gpu") {
		t.Errorf("a taint that a user has taken away is back: %s", got)
	}
}

//
func TestNode_KeyAnnotationOnOwnNodeOnly(t *testing.T) {
	x := newTrial(t)
	x.asNode(machineInstance(), x.key.Hash())
	linux := &corev1.Node{}
	linux.Name, linux.Labels = "linux", map[string]string{corev1.LabelOSStable: "linux"}
	if err := x.Client.Create(t.Context(), linux); err != nil {
		t.Fatal(err)
	}
	version := linux.ResourceVersion
	x.reconcile()
	var nodes corev1.NodeList
	if err := x.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		if _, annotated := node.Annotations[v1alpha1.AnnotationPubKeyHash]; annotated != (node.Name == machine) {
			t.Errorf("Node %s has annotations %v", node.Name, node.Annotations)
		}
		if node.Name == "linux" && node.ResourceVersion != version {
			t.Error("another node was written to")
		}
	}
}
