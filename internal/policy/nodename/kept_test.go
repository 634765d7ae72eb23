package nodename

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

//
func TestNameKept(t *testing.T) {
	instance := newClaimant("a", "win", "key-1", time.Hour)
	instance.Status.NodeRef.Confirmed = true
	joined := instance
	joined.Status.NodeRef = &v1alpha1.NodeReference{Name: "win", UID: "node-1", Confirmed: true}
	moved := newClaimant("moved", "win", "key-1", 2*time.Hour)
	older := newClaimant("older", "win", "key-2", 3*time.Hour) // its claim is not confirmed
	node := func(uid, system, bound string, taints ...string) *corev1.Node {
		return nodeNamed("win", func(n *corev1.Node) {
			n.UID = "node-1"
			if uid != "" {
				n.UID = "node-2"
			}
			n.Labels[corev1.LabelOSStable] = system
			if bound != "" {
				n.Annotations[v1alpha1.AnnotationInstance] = bound
			}
			for _, key := range taints {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key})
			}
		})
	}
	const another = "another"
	keyed := func(key, system string) *corev1.Node {
		n := node(another, system, "moved")
		n.Annotations[v1alpha1.AnnotationHostKey] = key
		return n
	}
	back := newClaimant("moved", "win", "key-1", time.Minute)
	duplicate := back
	duplicate.Status.NodeRef = nil
	keyless := instance
	keyless.Status.HostKey = nil
	machines := []machinev1beta1.Machine{{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: "m"},
		Status:     machinev1beta1.MachineStatus{NodeRef: &corev1.ObjectReference{Name: "win"}},
	}}
	for name, c := range map[string]struct {
		claim  Claim
		reason string // empty: allowed
	}{
		"a name without a Node":                                  {Claim{Instance: instance}, ""},
		"the Node that the instance was bound to":                {Claim{Instance: joined, Node: node("", "windows", "a")}, ""},
		"that Node whatever it says of itself":                   {Claim{Instance: joined, Node: node("", "linux", "b")}, ""},
		"that Node although a Machine says that it is its":       {Claim{Instance: joined, Node: node("", "windows", "a"), Machines: machines}, ""},
		"a Node that its kubelet has just registered":            {Claim{Instance: instance, Node: node(another, "windows", "", v1alpha1.TaintNotReady)}, ""},
		"one that it has registered anew":                        {Claim{Instance: joined, Node: node(another, "windows", "", v1alpha1.TaintNotReady)}, ""},
		"the Node of the same host's former entry":               {Claim{Instance: instance, Node: node(another, "windows", "moved"), Others: []v1alpha1.WindowsInstance{withRemovedState(moved)}}, ""},
		"the same when that entry has come back and has no name": {Claim{Instance: instance, Node: node(another, "windows", "moved"), Others: []v1alpha1.WindowsInstance{duplicate}}, ""},
		"the same when that entry is gone":                       {Claim{Instance: instance, Node: keyed("key-1", "windows")}, ""},
		"a claim of another that is not confirmed":               {Claim{Instance: instance, Others: []v1alpha1.WindowsInstance{older}}, ""},
		"a Linux Node":                                          {Claim{Instance: instance, Node: node(another, "linux", "")}, v1alpha1.ReasonNameConflict},
		"a Linux Node in place of its own":                      {Claim{Instance: joined, Node: node(another, "linux", "")}, v1alpha1.ReasonNameConflict},
		"a Linux Node that has the taint":                       {Claim{Instance: instance, Node: node(another, "linux", "", v1alpha1.TaintNotReady)}, v1alpha1.ReasonNameConflict},
		"a Windows Node that nobody here has made":              {Claim{Instance: instance, Node: node(another, "windows", "")}, v1alpha1.ReasonNameConflict},
		"the Node of another instance":                          {Claim{Instance: instance, Node: node(another, "windows", "b", v1alpha1.TaintNotReady)}, v1alpha1.ReasonNameConflict},
		"the Node of another host's entry that is gone":         {Claim{Instance: instance, Node: keyed("key-2", "windows")}, v1alpha1.ReasonNameConflict},
		"that of an entry that is gone, whose key is not known": {Claim{Instance: keyless, Node: keyed("", "windows")}, v1alpha1.ReasonNameConflict},
		"a Linux Node with the host's key":                      {Claim{Instance: instance, Node: keyed("key-1", "linux")}, v1alpha1.ReasonNameConflict},
		"the Node of the same host's entry that stays": {Claim{
			Instance: instance, Node: keyed("key-1", "windows"), Others: []v1alpha1.WindowsInstance{back}}, v1alpha1.ReasonNameConflict},
		"the name of a Machine that came since":                 {Claim{Instance: instance, Machines: machines}, v1alpha1.ReasonNameConflict},
		"the name of a Machine, after its own Node was deleted": {Claim{Instance: joined, Machines: machines}, v1alpha1.ReasonNameConflict},
	} {
		t.Run(name, func(t *testing.T) {
			c.claim.NodeName = "win"
			decision := StillGranted(c.claim)
			if decision.Allowed != (c.reason == "") || !decision.Allowed && decision.Reason != c.reason {
				t.Errorf("allowed %t for %s: %s", decision.Allowed, decision.Reason, decision.Message)
			}
		})
	}
}
