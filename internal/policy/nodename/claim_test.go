package nodename

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

var today = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

func newClaimant(name, node, hostKey string, age time.Duration) v1alpha1.WindowsInstance {
	return v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(today.Add(-age))},
		Spec:       v1alpha1.WindowsInstanceSpec{Address: name + ".example.com"},
		Status: v1alpha1.WindowsInstanceStatus{
			NodeRef: &v1alpha1.NodeReference{Name: node, ClaimedAt: ptr.To(metav1.NewTime(today))}, HostKey: &v1alpha1.HostKey{Key: hostKey},
			Host: &v1alpha1.HostStatus{MachineID: hostKey},
		},
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

func withRemovedState(instance v1alpha1.WindowsInstance) v1alpha1.WindowsInstance {
	instance.Spec.DesiredState = v1alpha1.DesiredStateRemoved
	return instance
}

func TestNameClaim(t *testing.T) {
	young, old := newClaimant("young", "win", "key-1", time.Minute), newClaimant("old", "win", "key-2", time.Hour)
	configured := newClaimant("configured", "win", "key-3", 0)
	configured.Status.NodeRef.Confirmed = true
	twin := newClaimant("twin", "win", "key-1", time.Hour)
	// On vSphere, the source names the host of a Machine: the instance claims that name regardless of the host's own
	// name.
	namesake := newClaimant("machine", "winworker-x2k4f", "key-1", time.Hour)
	clone := newClaimant("clone", "winworker-x2k4f", "key-1", time.Hour)
	clone.Status.Host.Addresses = []string{"10.0.0.9"}
	provisioning := []machinev1beta1.Machine{{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: "master-0", UID: "machine-uid"},
		Status: machinev1beta1.MachineStatus{NodeRef: &corev1.ObjectReference{Name: "node-of-master"}, Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "10.0.0.3"}, {Type: corev1.NodeInternalDNS, Address: "ip-10-0-0-3.EC2.internal"},
			{Type: corev1.NodeHostName, Address: "host-3"}, {Type: corev1.NodeExternalDNS, Address: "ec2-18-0-0-3.amazonaws.com"},
		}},
	}}
	onMachine := func(uid types.UID) v1alpha1.WindowsInstance {
		instance := young
		instance.Spec.Source.Machine = &v1alpha1.MachineReference{Namespace: v1alpha1.MachineNamespace, Name: "master-0", UID: uid}
		return instance
	}
	for _, instance := range []*v1alpha1.WindowsInstance{&young, &twin, &namesake} {
		instance.Status.Host.Addresses = []string{"10.0.0.8", "192.168.0.8"}
	}

	for name, c := range map[string]struct {
		claim  Claim
		reason string // empty: allowed
	}{
		"a name that nobody has is free":   {Claim{Instance: young, NodeName: "win"}, ""},
		"another instance of another name": {Claim{Instance: young, NodeName: "win", Others: []v1alpha1.WindowsInstance{newClaimant("x", "other", "k", time.Hour)}}, ""},
		"itself in the list":               {Claim{Instance: young, NodeName: "win", Others: []v1alpha1.WindowsInstance{young}}, ""},
		"an older instance that claims the name keeps it": {
			Claim{Instance: young, NodeName: "win", Others: []v1alpha1.WindowsInstance{old}}, v1alpha1.ReasonNameConflict},
		"an older instance waits until the younger has withdrawn, which may have looked too early": {
			Claim{Instance: old, NodeName: "win", Others: []v1alpha1.WindowsInstance{young}}, v1alpha1.ReasonWaiting},
		"an instance that has confirmed its name keeps it against an older entry": {
			Claim{Instance: old, NodeName: "win", Others: []v1alpha1.WindowsInstance{configured}}, v1alpha1.ReasonNameConflict},
		"the same host under two addresses is configured once": {
			Claim{Instance: young, NodeName: "win", Others: []v1alpha1.WindowsInstance{twin}}, v1alpha1.ReasonDuplicateHost},
		"a host that another instance has under another name is configured once": {
			Claim{Instance: young, NodeName: "win", Others: []v1alpha1.WindowsInstance{namesake}}, v1alpha1.ReasonDuplicateHost},
		"of two names for one host the older waits until the younger has withdrawn": {
			Claim{Instance: namesake, NodeName: "winworker-x2k4f", Others: []v1alpha1.WindowsInstance{young}}, v1alpha1.ReasonWaiting},
		"machines of one image that have host key and machine ID in common are two hosts": {
			Claim{Instance: young, NodeName: "win", Others: []v1alpha1.WindowsInstance{clone}}, ""},
		"a host that moved to a new address takes over from its removed entry": {
			Claim{Instance: young, NodeName: "win", Others: []v1alpha1.WindowsInstance{withRemovedState(twin)},
				Node: nodeNamed("win", func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationInstance] = "twin" })}, ""},
		"also when that entry went before the claim was looked at": {
			Claim{Instance: young, NodeName: "win", Node: nodeNamed("win", func(n *corev1.Node) {
				n.Labels[corev1.LabelOSStable] = "windows"
				n.Annotations[v1alpha1.AnnotationInstance], n.Annotations[v1alpha1.AnnotationHostKey] = "twin", "key-1"
			})}, ""},
		"but not from another host's entry that went": {
			Claim{Instance: young, NodeName: "win", Node: nodeNamed("win", func(n *corev1.Node) {
				n.Labels[corev1.LabelOSStable] = "windows"
				n.Annotations[v1alpha1.AnnotationInstance], n.Annotations[v1alpha1.AnnotationHostKey] = "other", "key-2"
			})}, v1alpha1.ReasonNameConflict},
		"a Machine's name is taken before its Node is there": {
			Claim{Instance: young, NodeName: "ip-10-0-0-3.ec2.internal", Machines: provisioning}, v1alpha1.ReasonNameConflict},
		"and its own name, before it has any address": {
			Claim{Instance: young, NodeName: "worker-1", Machines: []machinev1beta1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", UID: "new"}}}},
			v1alpha1.ReasonNameConflict},
		"and so is its host name": {
			Claim{Instance: young, NodeName: "host-3", Machines: provisioning}, v1alpha1.ReasonNameConflict},
		"and the name of a Node that it had": {
			Claim{Instance: young, NodeName: "node-of-master", Machines: provisioning}, v1alpha1.ReasonNameConflict},
		"the host of the Machine itself has it": {
			Claim{Instance: onMachine("machine-uid"), NodeName: "ip-10-0-0-3.ec2.internal", Machines: provisioning}, ""},
		"but not that of another Machine which had the Machine's name": {
			Claim{Instance: onMachine("former-uid"), NodeName: "ip-10-0-0-3.ec2.internal", Machines: provisioning}, v1alpha1.ReasonNameConflict},
		"what else Machines are called is nobody's node name": {
			Claim{Instance: young, NodeName: "ec2-18-0-0-3.amazonaws.com", Machines: provisioning}, ""},
		"a Linux node keeps its name: nobody becomes master-0": {
			Claim{Instance: young, NodeName: "master-0", Node: nodeNamed("master-0", func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "linux" })},
			v1alpha1.ReasonNameConflict},
		"a Linux node with our taint keeps its name": {
			Claim{Instance: young, NodeName: "master-0", Node: nodeNamed("master-0", func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNotReady}}
			})}, v1alpha1.ReasonNameConflict},
		"a Node bound to this instance": {
			Claim{Instance: young, NodeName: "win", Node: nodeNamed("win", func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationInstance] = "young" })}, ""},
		"a Node bound to another instance": {
			Claim{Instance: young, NodeName: "win", Node: nodeNamed("win", func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationInstance] = "other" })},
			v1alpha1.ReasonNameConflict},
		"a Windows node in service that is nobody's": {
			Claim{Instance: young, NodeName: "win", Node: nodeNamed("win", func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" })},
			v1alpha1.ReasonNameConflict},
		"a Windows node that is joining when the operator was ended": {
			Claim{Instance: young, NodeName: "win", Node: nodeNamed("win", func(n *corev1.Node) {
				n.Labels[corev1.LabelOSStable] = "windows"
				n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNotReady}}
			})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.claim.Now = today
			decision := Grant(c.claim)
			if decision.Allowed != (c.reason == "") || decision.Reason != c.reason {
				t.Errorf("decision is %+v, want reason %q", decision, c.reason)
			}
			if !decision.Allowed && decision.Message == "" {
				t.Error("the refusal says nothing")
			}
		})
	}
}

// An operator may be killed between the claim of an instance and the check, and the host may no longer exist.
func TestNameClaim_UnconfirmedClaimExpires(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(*v1alpha1.WindowsInstance)
		age    time.Duration
		waits  bool
	}{
		"a claim that was written a moment ago is waited for":     {age: time.Second, waits: true},
		"so is one that still has a moment":                       {age: claimTTL - time.Second, waits: true},
		"one that nobody has confirmed for long counts no more":   {age: claimTTL},
		"nor does one of a former version, which did not date it": {change: func(i *v1alpha1.WindowsInstance) { i.Status.NodeRef.ClaimedAt = nil }},
		"nor that of an instance that is being removed": {
			change: func(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateRemoved }},
		"nor that of one that is left alone": {
			change: func(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateUnmanaged }},
		"nor that of one that is paused": {change: func(i *v1alpha1.WindowsInstance) { i.Spec.Paused = true }},
	} {
		t.Run(sentence, func(t *testing.T) {
			younger, claim := newClaimant("young", "win", "key-1", time.Minute), Claim{
				Instance: newClaimant("old", "win", "key-2", time.Hour), NodeName: "win", Now: today.Add(c.age)}
			if c.change != nil {
				c.change(&younger)
			}
			claim.Others = []v1alpha1.WindowsInstance{younger}
			decision := Grant(claim)
			if decision.Allowed == c.waits || c.waits && (decision.Reason != v1alpha1.ReasonWaiting || !decision.Transient) {
				t.Errorf("%+v", decision)
			}
			younger.Status.NodeRef.Confirmed = true
			if decision := Grant(claim); decision.Reason != v1alpha1.ReasonNameConflict {
				t.Errorf("a confirmed claim always counts: %+v", decision)
			}
		})
	}
}

func TestNameClaim_RenewedBeforeExpiry(t *testing.T) {
	dated := func(age time.Duration) *v1alpha1.NodeReference {
		return &v1alpha1.NodeReference{Name: "win", UID: "uid", ClaimedAt: ptr.To(metav1.NewTime(today.Add(-age)))}
	}
	for sentence, c := range map[string]struct {
		present *v1alpha1.NodeReference
		writes  bool
	}{
		"the first claim":                  {nil, true},
		"a claim to another name":          {&v1alpha1.NodeReference{Name: "other", Confirmed: true}, true},
		"a claim of a moment ago stays":    {dated(time.Second), false},
		"one that could run out meanwhile": {dated(claimTTL / 2), true},
		"one of a former version":          {&v1alpha1.NodeReference{Name: "win", UID: "uid"}, true},
		"a confirmed one stays":            {&v1alpha1.NodeReference{Name: "win", UID: "uid", Confirmed: true}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			claim, write := RenewClaim(c.present, "win", today)
			if write != c.writes || claim.Name != "win" {
				t.Errorf("%+v, written: %t", claim, write)
			}
			if write && (claim.Confirmed || !claim.ClaimedAt.Time.Equal(today)) || !write && claim != c.present {
				t.Errorf("%+v", claim)
			}
			if same := c.present != nil && c.present.Name == "win"; same && claim.UID != "uid" {
				t.Errorf("the UID of its Node is lost: %+v", claim)
			}
		})
	}
}
