package fakemachineapi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// R-036 R-037
func TestMachine_Phases(t *testing.T) {
	f := start(t)
	f.memory.holdBack()
	taint := corev1.Taint{Key: "team", Value: "blue", Effect: corev1.TaintEffectNoSchedule}
	f.requireNoError(f.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "windows-user-data", Namespace: f.namespace},
		Data:       map[string][]byte{userDataKey: []byte("<powershell>")}}))
	f.newMachine("win", func(m *machinev1.Machine) {
		m.Spec.ProviderSpec = awsSpec("ami-7", "windows-user-data")
		m.Spec.Labels = map[string]string{"node-role.kubernetes.io/worker": ""}
		m.Spec.Taints = []corev1.Taint{taint}
	})

	m := f.awaitMachine("it has a provider ID", "win", func(m *machinev1.Machine) bool { return m.Spec.ProviderID != nil })
	if currentPhase(m) != machinev1.PhaseProvisioning || len(m.Status.Addresses) != 0 || !slices.Contains(m.Finalizers,
		machinev1.MachineFinalizer) {
		t.Errorf("a Machine whose virtual machine boots: phase %s, addresses %v, finalizers %v", currentPhase(m),
			m.Status.Addresses, m.Finalizers)
	}
	created := f.memory.createdFor("win")
	if len(created) != 1 || created[0].OperatingSystem != Windows || created[0].Image != "ami-7" || created[0].Zone != "us-east-1b" ||
		string(created[0].UserData) != "<powershell>" {
		t.Fatalf("the cloud was asked for %+v", created)
	}
	if created[0].Platform != "AWS" || *m.Spec.ProviderID != "aws:///us-east-1b/"+created[0].ID ||
		created[0].ID != instanceID("AWS", m.UID) {
		t.Errorf("platform %s, provider ID %s, instance %s", created[0].Platform, *m.Spec.ProviderID, created[0].ID)
	}

	f.memory.bootAll()
	m = f.awaitPhase("win", machinev1.PhaseProvisioned)
	if len(m.Status.Addresses) != 1 || m.Status.NodeRef != nil || m.Status.LastUpdated == nil ||
		!strings.Contains(string(m.Status.ProviderStatus.Raw), created[0].ID) {
		t.Errorf("a provisioned Machine has status %+v", m.Status)
	}

	node := f.joinNode(m, corev1.ConditionTrue)
	m = f.awaitPhase("win", machinev1.PhaseRunning)
	if m.Status.NodeRef.Name != node.Name || m.Status.NodeRef.UID != node.UID ||
		m.Annotations[annotationInstanceState] != Running {
		t.Errorf("a running Machine has nodeRef %v, annotations %v", m.Status.NodeRef, m.Annotations)
	}
	hasMachineMetadata := func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKeyFromObject(node), node)
		_, worker := node.Labels["node-role.kubernetes.io/worker"]
		return worker && slices.Contains(node.Spec.Taints, taint) &&
			node.Annotations[annotationMachine] == f.namespace+"/win", err
	}
	f.pollUntil("the Node has labels, taints and annotation of its Machine", hasMachineMetadata)
	updateObject(f, node, func(n *corev1.Node) {
		delete(n.Labels, "node-role.kubernetes.io/worker")
		n.Spec.Taints = nil
		n.Labels["mine"] = "stays"
	})
	f.pollUntil("what the Node lost it gets again", hasMachineMetadata)
	if node.Labels["mine"] != "stays" {
		t.Error("a label of somebody else is gone")
	}
}

func TestMachine_AddressChangeReported(t *testing.T) {
	f := start(t, fastClock)
	f.newMachine("win")
	before := f.awaitPhase("win", machinev1.PhaseProvisioned).Status.Addresses[0]
	f.memory.bootAll()
	f.awaitMachine("the new address is in its status", "win", func(m *machinev1.Machine) bool {
		return m.Status.Addresses[0] != before
	})
}

func TestMachine_NodeFoundByAddressWithoutCloud(t *testing.T) {
	f := start(t, withPlatform("None"))
	f.newMachine("linux", func(m *machinev1.Machine) {
		m.Labels = nil
		m.Spec.ProviderSpec = rawSpec(map[string]any{"template": "rhcos"})
	})
	m := f.awaitPhase("linux", machinev1.PhaseProvisioned)
	if created := f.memory.createdFor("linux"); created[0].OperatingSystem != Linux || m.Spec.ProviderID != nil {
		t.Errorf("operating system %s, provider ID %v", created[0].OperatingSystem, m.Spec.ProviderID)
	}
	f.joinNode(m, corev1.ConditionTrue)
	f.awaitPhase("linux", machinev1.PhaseRunning)
}

func TestMachine_WaitsForUserData(t *testing.T) {
	f := start(t)
	f.newMachine("win", func(m *machinev1.Machine) { m.Spec.ProviderSpec = awsSpec("ami-1", "late") })
	f.awaitEvent("FailedCreate", "win")
	if m := f.awaitPhase("win", machinev1.PhaseProvisioning); hasFailed(m) || f.memory.countMachines() != 0 {
		t.Errorf("failed: %v, virtual machines: %d", hasFailed(m), f.memory.countMachines())
	}
	f.requireNoError(f.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: f.namespace},
		Data:       map[string][]byte{userDataKey: []byte("data")}}))
	f.awaitPhase("win", machinev1.PhaseProvisioned)
}

func TestMachine_PermanentErrorsLeadToFailed(t *testing.T) {
	f := start(t, fastClock)
	t.Run("a Machine without an image is Failed and stays so", func(t *testing.T) {
		f := f.forSubtest(t)
		f.newMachine("invalid", func(m *machinev1.Machine) {
			m.Spec.ProviderSpec = rawSpec(map[string]any{"template": "of another platform"})
		})
		m := f.awaitPhase("invalid", machinev1.PhaseFailed)
		if *m.Status.ErrorReason != machinev1.InvalidConfigurationMachineError ||
			!strings.Contains(*m.Status.ErrorMessage, "ami.id") {
			t.Errorf("%s: %s", *m.Status.ErrorReason, *m.Status.ErrorMessage)
		}
		updateObject(f, m, func(m *machinev1.Machine) { m.Spec.ProviderSpec = awsSpec("ami-1", "") })
		f.newMachine("later")
		f.awaitPhase("later", machinev1.PhaseProvisioned)
		if len(f.memory.createdFor("invalid")) != 0 {
			t.Error("it was tried again")
		}
		f.requireNoError(f.Delete(t.Context(), m))
		f.awaitGone(m)
	})
	t.Run("a permanent error of the cloud makes a Machine Failed", func(t *testing.T) {
		f := f.forSubtest(t)
		f.faults.Fail(Create, "quota", Permanent(errors.New("VcpuLimitExceeded")))
		f.newMachine("quota")
		m := f.awaitPhase("quota", machinev1.PhaseFailed)
		if *m.Status.ErrorReason != machinev1.CreateMachineError || *m.Status.ErrorMessage != "VcpuLimitExceeded" {
			t.Errorf("%s: %s", *m.Status.ErrorReason, *m.Status.ErrorMessage)
		}
	})
	t.Run("any other error of the cloud is tried again", func(t *testing.T) {
		f := f.forSubtest(t)
		f.faults.Fail(Create, "busy-*", errors.New("RequestLimitExceeded"))
		f.newMachine("busy-1")
		f.awaitEvent("FailedCreate", "busy-1")
		f.faults.Heal()
		f.awaitPhase("busy-1", machinev1.PhaseProvisioned)
	})
	t.Run("a virtual machine that was deleted behind its back makes a Machine Failed", func(t *testing.T) {
		f := f.forSubtest(t)
		f.newMachine("lost")
		f.awaitPhase("lost", machinev1.PhaseProvisioned)
		f.requireNoError(f.memory.Delete(t.Context(), f.memory.createdFor("lost")[0].ID))
		m := f.awaitPhase("lost", machinev1.PhaseFailed)
		if *m.Status.ErrorMessage != "Can't find created instance." || m.Annotations[annotationInstanceState] != "Unknown" {
			t.Errorf("%s, annotations %v", *m.Status.ErrorMessage, m.Annotations)
		}
	})
}

// forSubtest returns the fixture for a subtest.
func (f *fixture) forSubtest(t *testing.T) *fixture {
	g := *f
	g.t = t
	return &g
}

func TestMachine_RestartCreatesNoDuplicate(t *testing.T) {
	f := start(t)
	f.newMachine("win")
	m := f.awaitPhase("win", machinev1.PhaseProvisioned)
	f.stop()
	// Simulates a kill after the request to the cloud and before the result was recorded.
	before := m.DeepCopy() // A patch, because the Machine may have been written once more meanwhile.
	m.Status.Phase, m.Status.Addresses = ptr.To(machinev1.PhaseProvisioning), nil
	f.requireNoError(f.Status().Patch(t.Context(), m, client.MergeFrom(before)))
	updateObject(f, m, func(m *machinev1.Machine) { m.Spec.ProviderID = nil })
	f.run()
	f.awaitPhase("win", machinev1.PhaseProvisioned)
	if created := f.memory.createdFor("win"); len(created) != 1 {
		t.Errorf("%d virtual machines were made", len(created))
	}
}
