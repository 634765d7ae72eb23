package nodename

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

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

func ofMachineAPI(n *corev1.Node) { delete(n.Labels, v1alpha1.LabelBYOH) }

//
func TestLegacyNode_ClaimedOnlyByItsHost(t *testing.T) {
	listed := newClaimant("entry", "win", "key-1", time.Hour)
	machine := newClaimant("winworker-x2k4f", "win", "key-1", time.Hour)
	machine.Spec.Source.Machine = &v1alpha1.MachineReference{Name: "winworker-x2k4f"}
	unseen := machine
	unseen.Status.HostKey, unseen.Status.Host = nil, nil
	foreign := newClaimant("entry", "win", "key-2", time.Hour)
	foreign.Status.HostKey.Fingerprint = "SHA256:other"
	accepted := newClaimant("entry", "win", "key-2", time.Hour)
	accepted.Status.HostKey.Fingerprint = "SHA256:other"
	accepted.Annotations = map[string]string{v1alpha1.AnnotationAcceptHostKey: "SHA256:other"}

	node := legacyNodeOf("win", "10.0.0.8", nil)
	unpinned := legacyNodeOf("win", "10.0.0.8", func(n *corev1.Node) { delete(n.Annotations, v1alpha1.AnnotationHostKey) })
	ofMachine := legacyNodeOf("win", "10.0.0.8", ofMachineAPI)
	is := MachineProof{NodeName: "win", NodeUID: "uid-of-win", Addresses: []string{"10.0.0.8"}}
	proof := func(change func(*MachineProof)) LegacyProof {
		machine := is
		change(&machine)
		return LegacyProof{Machine: &machine}
	}
	unlinked := func(m *MachineProof) { m.NodeName, m.NodeUID = "", "" }

	for name, c := range map[string]struct {
		instance v1alpha1.WindowsInstance
		node     *corev1.Node
		older    LegacyProof
		check    string // empty: allowed
	}{
		"a listed host that was reached at the Node's address and shows the Node's key":  {listed, node, LegacyProof{Dialed: "10.0.0.8"}, ""},
		"a listed host of the time before host keys were pinned":                         {listed, unpinned, LegacyProof{Dialed: "10.0.0.8"}, ""},
		"a listed host whose key is in the ConfigMap":                                    {listed, unpinned, LegacyProof{Dialed: "10.0.0.8", RecordedKey: "key-1"}, ""},
		"the Node's key counts, and not what was noted before it was a node":             {listed, node, LegacyProof{Dialed: "10.0.0.8", RecordedKey: "key-9"}, ""},
		"a listed host that was not reached yet":                                         {listed, node, LegacyProof{}, "LegacyNodeAddressMismatch"},
		"a host at another address that calls itself by the name of the Node":            {listed, node, LegacyProof{Dialed: "10.0.0.66"}, "LegacyNodeAddressMismatch"},
		"such a host that also has the right key, copied from an image":                  {listed, unpinned, LegacyProof{Dialed: "10.0.0.66", RecordedKey: "key-1"}, "LegacyNodeAddressMismatch"},
		"a host at the Node's external address or name, which are not those of the host": {listed, legacyNodeOf("10.0.0.8", "10.0.0.9", nil), LegacyProof{Dialed: "10.0.0.8"}, "LegacyNodeAddressMismatch"},
		"another machine at the Node's address, with another key than the Node's":        {foreign, node, LegacyProof{Dialed: "10.0.0.8"}, "LegacyNodeHostKeyMismatch"},
		"another machine at the Node's address, with another key than the ConfigMap's":   {foreign, unpinned, LegacyProof{Dialed: "10.0.0.8", RecordedKey: "key-1"}, "LegacyNodeHostKeyMismatch"},
		"a host with another key that an administrator has accepted":                     {accepted, node, LegacyProof{Dialed: "10.0.0.8"}, ""},
		"a listed host that claims the node of a Machine":                                {listed, ofMachine, LegacyProof{Dialed: "10.0.0.8"}, "LegacyNodeSourceMismatch"},
		"a Linux node": {listed, legacyNodeOf("win", "10.0.0.8", func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "linux" }),
			LegacyProof{Dialed: "10.0.0.8"}, "ForeignNode"},
		"a Node that another instance has taken over": {listed, legacyNodeOf("win", "10.0.0.8", func(n *corev1.Node) {
			n.Annotations[v1alpha1.AnnotationInstance], n.Annotations[v1alpha1.AnnotationHostKey] = "other", "key-2"
		}), LegacyProof{Dialed: "10.0.0.8"}, "ForeignNode"},

		"the Machine says which its Node is, without a connection":         {unseen, ofMachine, proof(func(*MachineProof) {}), ""},
		"the Machine says so, and the host was reached":                    {machine, ofMachine, proof(func(*MachineProof) {}), ""},
		"a Machine that was not linked to its Node, which has its address": {unseen, ofMachine, proof(unlinked), ""},
		"a Machine whose Node is another":                                  {unseen, ofMachine, proof(func(m *MachineProof) { m.NodeName = "win-2" }), "LegacyNodeMachineMismatch"},
		"a Machine whose Node was deleted, and there is one of its name":   {unseen, ofMachine, proof(func(m *MachineProof) { m.NodeUID = "before" }), "LegacyNodeMachineMismatch"},
		"a Machine that was not linked, and the Node is another Machine's": {unseen, ofMachine, proof(func(m *MachineProof) { unlinked(m); m.NodeOfOtherMachine = true }), "LegacyNodeMachineMismatch"},
		"a Machine that was not linked, and has another address":           {unseen, ofMachine, proof(func(m *MachineProof) { unlinked(m); m.Addresses = []string{"10.0.0.9"} }), "LegacyNodeMachineMismatch"},
		"a Machine that is gone, or was made again":                        {unseen, ofMachine, LegacyProof{Dialed: "10.0.0.8"}, "LegacyNodeMachineMismatch"},
		"a Machine's host that claims the node of a listed one":            {machine, node, proof(func(*MachineProof) {}), "LegacyNodeSourceMismatch"},
		"a Machine's host that shows another key than that of its Node": {func() v1alpha1.WindowsInstance {
			i := machine
			i.Status.HostKey = &v1alpha1.HostKey{Key: "key-2"}
			return i
		}(), ofMachine, proof(func(*MachineProof) {}), "LegacyNodeHostKeyMismatch"},
		"a Machine's host is not asked for an address: the Machine API is proof":  {machine, ofMachine, proof(func(m *MachineProof) { m.Addresses = nil }), ""},
		"a Machine without address or Node, whose host calls itself by this name": {machine, ofMachine, LegacyProof{Dialed: "10.0.0.8", Machine: &MachineProof{}}, "LegacyNodeMachineMismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Grant(Claim{Instance: c.instance, NodeName: "win", Node: c.node, Legacy: c.older})
			if decision.Allowed != (c.check == "") || !decision.Allowed && decision.Check != c.check {
				t.Fatalf("decision is %+v, want check %q", decision, c.check)
			}
			if !decision.Allowed && (decision.Reason != v1alpha1.ReasonNameConflict || decision.Message == "") {
				t.Errorf("the refusal is %+v", decision)
			}
		})
	}

	t.Run("a younger instance that claims the name as well does not get it", func(t *testing.T) {
		young := newClaimant("young", "win", "key-1", time.Minute)
		decision := Grant(Claim{Instance: young, NodeName: "win", Node: node, Legacy: LegacyProof{Dialed: "10.0.0.8"}, Others: []v1alpha1.WindowsInstance{listed}})
		if decision.Allowed {
			t.Errorf("decision is %+v", decision)
		}
	})
}
