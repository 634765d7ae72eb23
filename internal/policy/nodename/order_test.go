package nodename

import (
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

func TestNameClaim_TieOneWaitsOtherRejected(t *testing.T) {
	a, b := newClaimant("a", "win", "key-1", time.Minute), newClaimant("b", "win", "key-2", time.Minute)
	first := Grant(Claim{Instance: a, NodeName: "win", Others: []v1alpha1.WindowsInstance{a, b}})
	second := Grant(Claim{Instance: b, NodeName: "win", Others: []v1alpha1.WindowsInstance{a, b}})
	if first.Reason != v1alpha1.ReasonWaiting || second.Reason != v1alpha1.ReasonNameConflict {
		t.Errorf("one gets %+v, the other %+v", first, second)
	}
}

func TestNameClaim_MachineIDDistinguishesClones(t *testing.T) {
	instance, clone := newClaimant("win", "win", "key", time.Minute), newClaimant("clone", "win", "key", time.Hour)
	clone.Status.Host.MachineID = "another"
	clone.Status.NodeRef.Confirmed = true
	if nodeidentity.IsSameHost(&instance, &clone) {
		t.Error("they count as one host")
	}
	if decision := Grant(Claim{Instance: instance, NodeName: "win",
		Others: []v1alpha1.WindowsInstance{clone}}); decision.Check != "NodeNameInUse" {
		t.Errorf("the name that both claim: %+v", decision)
	}
	if fate, _ := nodeidentity.FateOf(&instance, nil, []v1alpha1.WindowsInstance{clone}); fate != nodeidentity.Restored {
		t.Errorf("the removal of the one depends on the other: %d", fate)
	}
}

func TestLegacyNode_OfTwoMachinesNotAdopted(t *testing.T) {
	machine := newClaimant("winworker-x2k4f", "win", "key-1", time.Hour)
	machine.Spec.Source.Machine = &v1alpha1.MachineReference{Name: "winworker-x2k4f"}
	decision := Grant(Claim{
		Instance: machine, NodeName: "win", Node: legacyNodeOf("win", "10.0.0.8", ofMachineAPI),
		Legacy: LegacyProof{Machine: &MachineProof{NodeName: "win", NodeUID: "uid-of-win", NodeOfOtherMachine: true}},
	})
	if decision.Check != "LegacyNodeMachineMismatch" {
		t.Errorf("decision is %+v", decision)
	}
}
