package monitoring

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// newNode returns a node in service.
func newNode(name, ip string, changes ...func(*corev1.Node)) corev1.Node {
	node := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon),
			Labels: map[string]string{corev1.LabelOSStable: "windows"},
			Annotations: map[string]string{v1alpha1.AnnotationVersion: "12.0.0",
				v1alpha1.AnnotationInstance: name + "-instance"}},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: ip}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(&node)
	}
	return node
}

// instanceOf returns the instance of a Windows node.
func instanceOf(node string, changes ...func(*v1alpha1.WindowsInstance)) v1alpha1.WindowsInstance {
	instance := v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: node + "-instance"},
		Spec:       v1alpha1.WindowsInstanceSpec{DesiredState: v1alpha1.DesiredStateNode},
		Status: v1alpha1.WindowsInstanceStatus{NodeRef: &v1alpha1.NodeReference{Name: node, UID: "uid-" + node,
			Confirmed: true}},
	}
	for _, change := range changes {
		change(&instance)
	}
	return instance
}

func withUnmanaged(reason string) func(*v1alpha1.WindowsInstance) {
	return func(i *v1alpha1.WindowsInstance) {
		i.Spec.DesiredState, i.Spec.DesiredStateReason = v1alpha1.DesiredStateUnmanaged, reason
	}
}

func markRemoved(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateRemoved }

func withMachine(i *v1alpha1.WindowsInstance) {
	i.Spec.Source.Machine = &v1alpha1.MachineReference{Name: "machine"}
}

// start is the time of the operator's cordon.
const start = "2026-01-01T12:00:00Z"

// withCordon returns a change to a node that the operator has cordoned, with the record of the drain.
func withCordon(drained string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Spec.Unschedulable = true
		node.Annotations[v1alpha1.AnnotationCordoned], node.Annotations[v1alpha1.AnnotationDrained] = start, drained
	}
}

func addStartupTaint(node *corev1.Node) {
	node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}}
}

func withAnnotations(annotations map[string]string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations = annotations }
}

//
func TestDesiredAddresses_NodesInService(t *testing.T) {
	const ip = "10.0.0.7"
	type instances = []v1alpha1.WindowsInstance
	in, own := newNode("a", ip), instances{instanceOf("a")}
	of := func(changes ...func(*v1alpha1.WindowsInstance)) instances {
		return instances{instanceOf("a", changes...)}
	}
	has := func(annotation, value string) corev1.Node {
		return newNode("a", ip, withAnnotations(map[string]string{annotation: value}))
	}
	for name, c := range map[string]struct {
		node      corev1.Node
		instances instances
		want      bool
	}{
		"a node in service":                      {in, own, true},
		"one whose instance is being made again": {in, nil, true},
		"one that is restarting":                 {newNode("a", ip, func(n *corev1.Node) { n.Status.Conditions = nil }), own, true},
		"one that is being upgraded":             {newNode("a", ip, func(n *corev1.Node) { n.Spec.Unschedulable = true }), own, true},
		"not one that has not been proven":       {newNode("a", ip, addStartupTaint), own, false},
		"not one that has just registered":       {newNode("a", ip, withAnnotations(nil)), own, false},
		"not one that is being deleted": {newNode("a", ip, func(n *corev1.Node) {
			n.DeletionTimestamp = &metav1.Time{Time: noon}
		}), own, false},
		"not one whose Machine is being deleted":             {in, of(withUnmanaged(v1alpha1.ReasonMachineDeleting)), false},
		"not one whose Machine has failed":                   {in, of(withUnmanaged(v1alpha1.ReasonMachineFailed)), false},
		"one whose Machine is to be ignored":                 {in, of(withUnmanaged(v1alpha1.ReasonMachineIgnored)), true},
		"one whose host waits for its removal":               {in, of(markRemoved), true},
		"one that is being drained for its removal":          {newNode("a", ip, withCordon(v1alpha1.DrainIncomplete)), of(markRemoved), true},
		"not one whose host is being given back":             {newNode("a", ip, withCordon(start)), of(markRemoved), false},
		"not one that a user has drained before its removal": {newNode("a", ip, func(n *corev1.Node) { n.Spec.Unschedulable = true }), of(markRemoved), false},
		"not one whose Machine is gone":                      {in, of(markRemoved, withMachine), false},
		"one that is drained for an upgrade":                 {newNode("a", ip, withCordon(start)), own, true},
		"one that another instance goes on with": {in, instances{instanceOf("a", markRemoved, withMachine),
			instanceOf("a", func(i *v1alpha1.WindowsInstance) { i.Name = "other" })}, true},
		"one that an older operator has configured": {has(v1alpha1.AnnotationVersion, "11.0.0"), nil, true},
		"one that is being taken over":              {has(v1alpha1.AnnotationTakenOverFrom, "11.0.0"), nil, true},
		"not one that nobody's operator knows":      {has("a", "b"), nil, false},
		"not one that says it is a leaving instance's": {in, of(markRemoved, withMachine, func(i *v1alpha1.WindowsInstance) {
			i.Status.NodeRef = nil
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			addresses, without := desiredAddresses([]corev1.Node{c.node}, c.instances)
			if len(addresses) == 1 != c.want || len(without) > 0 {
				t.Fatalf("the addresses are %v, without are %v", addresses, without)
			}
			if c.want && (addresses[0] != address{"a", "uid-a", ip}) {
				t.Errorf("the address is %+v", addresses[0])
			}
		})
	}
}

// The API server would reject a complete slice for one invalid address, and 99 valid addresses would be missing.
func TestDesiredAddresses_InvalidAddressReportedAndOmitted(t *testing.T) {
	with := func(addresses ...string) corev1.Node {
		return newNode("odd", "", func(n *corev1.Node) {
			n.Status.Addresses = nil
			for _, a := range addresses {
				n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
			}
		})
	}
	for name, c := range map[string]struct {
		node corev1.Node
		want string // of the odd node; "" if the node is reported as unreachable
	}{
		"none":              {with(), ""},
		"a name":            {with("odd.example.com"), ""},
		"loopback":          {with("127.0.0.1"), ""},
		"link-local":        {with("169.254.1.2"), ""},
		"multicast":         {with("224.0.0.1"), ""},
		"IPv6":              {with("fd00::1"), ""},
		"IPv4 behind it":    {with("fd00::1", "10.0.0.9"), "10.0.0.9"},
		"that of an older":  {with("10.0.0.7"), ""},
		"the first of two":  {with("10.0.0.9", "10.0.0.10"), "10.0.0.9"},
		"one of its own":    {with("10.0.0.8"), "10.0.0.8"},
		"unspecified, then": {with("0.0.0.0", "10.0.0.8"), "10.0.0.8"},
	} {
		t.Run(name, func(t *testing.T) {
			c.node.CreationTimestamp = metav1.NewTime(noon.Add(time.Minute))
			addresses, without := desiredAddresses([]corev1.Node{c.node, newNode("whole", "10.0.0.7")}, nil)
			got := map[string]string{}
			for _, a := range addresses {
				got[a.node] = a.ip
			}
			if got["whole"] != "10.0.0.7" || got["odd"] != c.want {
				t.Errorf("the addresses are %v", got)
			}
			if reported := len(without) == 1 && without[0].node.Name == "odd" && without[0].message != ""; reported != (c.want == "") {
				t.Errorf("it is said %v", without)
			}
		})
	}
	t.Run("the newer of two says whose address it is", func(t *testing.T) {
		newer := newNode("a", "10.0.0.7", func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(noon.Add(time.Second)) })
		_, without := desiredAddresses([]corev1.Node{newer, newNode("b", "10.0.0.7")}, nil)
		if len(without) != 1 || !strings.Contains(without[0].message, "Node b, which is older, has its address 10.0.0.7") {
			t.Errorf("%+v", without)
		}
	})
}

func TestDesiredAddresses_IndependentOfOrder(t *testing.T) {
	var nodes []corev1.Node
	for i := range 20 {
		nodes = append(nodes, newNode(fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.0.%d", 1+i%15)))
	}
	first, _ := desiredAddresses(nodes, nil)
	slices.Reverse(nodes)
	if second, _ := desiredAddresses(nodes, nil); !slices.Equal(first, second) {
		t.Errorf("%v and %v", first, second)
	}
	names := map[string]bool{}
	for _, a := range first {
		names[a.ip] = true
	}
	if len(first) != 15 || len(slices.Collect(maps.Keys(names))) != 15 {
		t.Errorf("%d addresses, %d different", len(first), len(names))
	}
}
