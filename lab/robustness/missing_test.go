package robustness

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestMissing_ReportsEachDifference(t *testing.T) {
	const version, key = "12.0.1", "hash"
	want := DesiredState{Version: version, KeyHash: key, Listed: []DesiredHost{{Node: "a", Address: "10.0.0.1"}}, Unlisted: []DesiredHost{{Node: "b", Address: "b"}}}
	good := func() CurrentState {
		return CurrentState{
			Nodes: []corev1.Node{*newNode("a", func(n *corev1.Node) {
				n.Annotations = map[string]string{v1alpha1.AnnotationVersion: version, v1alpha1.AnnotationPubKeyHash: key}
			})},
			Instances: []v1alpha1.WindowsInstance{*newInstance("a", func(i *v1alpha1.WindowsInstance) {
				i.Spec.DesiredState = v1alpha1.DesiredStateNode
				i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionTrue}}
			})},
		}
	}
	for what, mutate := range map[string]func(*CurrentState){
		"":                       func(*CurrentState) {},
		"an instance":            func(t *CurrentState) { t.Instances = nil },
		"a Ready instance":       func(t *CurrentState) { t.Instances[0].Status.Conditions[0].Status = metav1.ConditionFalse },
		"one that is up to date": func(t *CurrentState) { t.Instances[0].Status.Conditions[1].Status = metav1.ConditionFalse },
		"an end of the step":     func(t *CurrentState) { t.Instances[0].Status.Step = &v1alpha1.StepStatus{} },
		"the wish for a node":    func(t *CurrentState) { t.Instances[0].Spec.DesiredState = v1alpha1.DesiredStateRemoved },
		"a Node":                 func(t *CurrentState) { t.Nodes = nil },
		"the version":            func(t *CurrentState) { t.Nodes[0].Annotations[v1alpha1.AnnotationVersion] = "12.0.0" },
		"the key":                func(t *CurrentState) { t.Nodes[0].Annotations[v1alpha1.AnnotationPubKeyHash] = "x" },
		"a schedulable Node":     func(t *CurrentState) { t.Nodes[0].Spec.Unschedulable = true },
		"the end of a restart":   func(t *CurrentState) { t.Nodes[0].Annotations[v1alpha1.AnnotationRebootRequired] = "" },
		"a proven Node":          func(t *CurrentState) { t.Nodes[0].Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNotReady}} },
		"the end of an instance": func(t *CurrentState) { t.Instances = append(t.Instances, *newInstance("b")) },
		"the end of another": func(t *CurrentState) {
			t.Instances = append(t.Instances, *newInstance("c", func(i *v1alpha1.WindowsInstance) { i.Spec.Address = "10.0.0.3" }))
		},
		"the end of a Node":   func(t *CurrentState) { t.Nodes = append(t.Nodes, *newNode("b")) },
		"the end of an entry": func(t *CurrentState) { t.Policy.Status.Disruptions = []v1alpha1.Disruption{newDisruption("a", 0)} },
		"the end of a request": func(t *CurrentState) {
			t.Requests = []certificatesv1.CertificateSigningRequest{{ObjectMeta: metav1.ObjectMeta{Name: "wmco-a-1"}}}
		},
	} {
		current := good()
		mutate(&current)
		if missing := Missing(want, current); (len(missing) == 0) != (what == "") {
			t.Errorf("without %q it finds %q", what, missing)
		}
	}
	t.Run("a Node that the user has made unschedulable stays so, and another of its name does not", func(t *testing.T) {
		cordoned, current := want, good()
		cordoned.Listed = []DesiredHost{{Node: "a", Address: "10.0.0.1", Cordoned: "1"}}
		for _, test := range []struct {
			uid           types.UID
			unschedulable bool
			missing       int
		}{{"1", true, 0}, {"1", false, 1}, {"2", false, 0}, {"2", true, 1}} {
			current.Nodes[0].UID, current.Nodes[0].Spec.Unschedulable = test.uid, test.unschedulable
			if missing := Missing(cordoned, current); len(missing) != test.missing {
				t.Errorf("of UID %s, unschedulable %t, it finds %q", test.uid, test.unschedulable, missing)
			}
		}
	})
	machines := want
	machines.Machines = 1
	if missing := Missing(machines, good()); len(missing) == 0 {
		t.Error("a MachineSet may lack a Machine")
	}
	want.Listed[0].Impostor = true
	current := good()
	if missing := Missing(want, current); len(missing) == 0 {
		t.Error("an impostor may be Ready")
	}
	current.Instances[0].Status.Summary = v1alpha1.ReasonNameConflict
	if missing := Missing(want, current); len(missing) > 0 {
		t.Errorf("of an impostor that is refused it finds %q", missing)
	}
}
