package instance

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

const elsewhere = "elsewhere"

// newSwappedTrial returns a trial after the addresses of two hosts were swapped. The instance has a Node elsewhere, and
// the host at the instance's address is the Node of another instance. The operator has accepted the host key.
func newSwappedTrial(t *testing.T) (*trial, *agentHost) {
	t.Helper()
	x, h, _ := nodeInService(t, "None")
	status := x.getInstance().Status
	x.createAnother(status.NodeRef.DeepCopy())
	own := readyNode(x.key.Hash())
	own.Name, own.UID = elsewhere, "elsewhere-uid"
	if err := x.Client.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	other := x.getNode()
	other.Annotations[v1alpha1.AnnotationInstance] = "another"
	if err := x.Client.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) {
		status.NodeRef = &v1alpha1.NodeReference{Name: elsewhere, UID: "elsewhere-uid", Confirmed: true, MachineID: "another-machine"}
	})
	return x, h
}

// nodeElsewhere returns the Node of the instance.
func (x *trial) nodeElsewhere() *corev1.Node {
	x.t.Helper()
	var nodes corev1.NodeList
	if err := x.Client.List(x.t.Context(), &nodes); err != nil {
		x.t.Fatal(err)
	}
	for i := range nodes.Items {
		if nodes.Items[i].Name == elsewhere {
			return &nodes.Items[i]
		}
	}
	return nil
}

// shareHostKey assigns the host at the instance's address to the other instance as well: both hosts were created
// from one image with a host key.
func (x *trial) shareHostKey() {
	x.t.Helper()
	other := &v1alpha1.WindowsInstance{}
	if err := x.Client.Get(x.t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: "another"}, other); err != nil {
		x.t.Fatal(err)
	}
	status := x.getInstance().Status
	other.Status.HostKey, other.Status.Host = status.HostKey, status.Host
	if err := x.Client.Status().Update(x.t.Context(), other); err != nil {
		x.t.Fatal(err)
	}
}

//
func TestHostMismatch_HostOfOtherNodeNotRestored(t *testing.T) {
	for name, c := range map[string]struct {
		machineID string // the recorded ID of the Node's host
		drained   bool
		sharesKey bool
	}{
		"before its Node is drained, if the machine ID differs":        {"another-machine", false, false},
		"after its Node is drained, if the machine ID is not recorded": {"", true, false},
		"before its Node is drained, if both hosts have one host key":  {"another-machine", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			x, h := newSwappedTrial(t)
			x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { status.NodeRef.MachineID = c.machineID })
			if c.sharesKey {
				x.shareHostKey()
			}
			x.changeSpec(x.getInstance(), setRemoved)
			var instance *v1alpha1.WindowsInstance
			for range 3 {
				instance, _ = x.reconcile()
				if instance == nil {
					t.Fatal("the instance is deleted")
				}
			}
			ready := expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonHostMismatch)
			for _, text := range []string{"Node " + machine, "WindowsInstance another (10.0.0.99)", "not the host of Node " + elsewhere} {
				if !strings.Contains(ready.Message, text) {
					t.Errorf("the message lacks %q: %s", text, ready.Message)
				}
			}
			if !strings.Contains(instance.Status.NextAction, v1alpha1.AnnotationForgetHost) {
				t.Errorf("the next action is %q", instance.Status.NextAction)
			}
			if slices.Contains(h.agentCommands(), "remove") {
				t.Errorf("the host of another node was restored: %q", h.agentCommands())
			}
			node := x.nodeElsewhere()
			if node == nil || x.getNode() == nil {
				t.Fatalf("a Node was deleted: left are %v and %v", node, x.getNode())
			}
			if node.Spec.Unschedulable != c.drained || x.getNode().Spec.Unschedulable {
				t.Errorf("unschedulable are its Node: %t, that of the host: %t", node.Spec.Unschedulable, x.getNode().Spec.Unschedulable)
			}
		})
	}
	t.Run("until an administrator declares the host lost, and then only the Node is deleted", func(t *testing.T) {
		x, h := newSwappedTrial(t)
		x.changeSpec(x.getInstance(), setRemoved)
		x.reconcile()
		x.annotateInstance(v1alpha1.AnnotationForgetHost, "true")
		for range 3 {
			if instance, _ := x.reconcile(); instance == nil {
				break
			}
		}
		if x.nodeElsewhere() != nil || x.getNode() == nil || slices.Contains(h.agentCommands(), "remove") {
			t.Errorf("left are %v and %v; run were %q", x.nodeElsewhere(), x.getNode(), h.agentCommands())
		}
	})
}

// acceptHostKey accepts the changed host key, as an administrator does.
func (x *trial) acceptHostKey() {
	x.t.Helper()
	instance, _ := x.reconcile()
	_, fingerprint, offered := strings.Cut(instance.Status.NextAction, v1alpha1.AnnotationAcceptHostKey+"=")
	if !offered {
		x.t.Fatalf("the next action is %q", instance.Status.NextAction)
	}
	fingerprint, _, _ = strings.Cut(fingerprint, ".")
	x.annotateInstance(v1alpha1.AnnotationAcceptHostKey, fingerprint)
}

// The Node of a reinstalled host is deleted, and there is nothing to restore. A Ready Node, however, has its host
// elsewhere.
func TestHostMismatch_NodeOfReinstalledHostDeleted(t *testing.T) {
	x, _, _ := nodeInService(t, "None")
	before := x.getInstance().Status.NodeRef.MachineID
	h := x.withAgent(func(o *fake.Options) { o.System.MachineID = "new" })
	if before == "" || before == "new" {
		t.Fatalf("the machine ID of the Node's host is recorded as %q", before)
	}
	x.changeSpec(x.getInstance(), setRemoved)
	x.acceptHostKey()
	instance, _ := x.reconcile()
	if instance == nil || x.getNode() == nil {
		t.Fatal("the Node is Ready, so its host runs elsewhere, and it was deleted")
	}
	ready := expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonHostMismatch)
	if !strings.Contains(ready.Message, "Node "+machine+" is Ready") || slices.Contains(h.agentCommands(), "remove") {
		t.Errorf("the message is %q; run were %q", ready.Message, h.agentCommands())
	}
	x.breakNode()
	for range 3 {
		if instance, _ = x.reconcile(); instance == nil {
			break
		}
	}
	if instance != nil || x.getNode() != nil {
		t.Errorf("left are %+v and %v", instance, x.getNode())
	}
}

// Each retry would announce another disruption.
func TestHostMismatch_RemovalAcquiresSlotOnce(t *testing.T) {
	x, _ := newSwappedTrial(t)
	gate := openGate()
	x.Gate = gate
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { status.NodeRef.MachineID = "" })
	x.changeSpec(x.getInstance(), setRemoved)
	for range 5 {
		instance, after := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonHostMismatch)
		x.clock.Step(after)
	}
	if len(gate.granted) != 1 || len(gate.held) > 0 {
		t.Errorf("the slot was granted to %v, and is held by %v", gate.granted, gate.held)
	}
}

// The restart is for the Node elsewhere, and a new machine with the same image has its address.
func TestHostMismatch_NewMachineNotRestarted(t *testing.T) {
	x, _, gate := nodeInService(t, "None")
	h := x.withAgent()
	node := x.getNode()
	requestReboot(node)
	if err := x.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	x.acceptHostKey()
	boot := h.machine.BootID()
	instance, _ := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonHostMismatch)
	if h.machine.BootID() != boot || slices.Contains(h.agentCommands(), "reboot") || x.getNode().Spec.Unschedulable || len(gate.held) > 0 {
		t.Errorf("run were %q; unschedulable is %t; %v holds the slot", h.agentCommands(), x.getNode().Spec.Unschedulable, gate.held)
	}
	x.breakNode()
	if instance, _ = x.reconcile(); instance.Status.Summary == v1alpha1.ReasonHostMismatch {
		t.Error("a host that was reinstalled stays off")
	}
}

// The restart or rollback is for the Node elsewhere.
func TestHostMismatch_HostOfOtherNodeNotChanged(t *testing.T) {
	x, h := newSwappedTrial(t)
	node := x.nodeElsewhere()
	node.Annotations[v1alpha1.AnnotationRebootRequired] = ""
	if err := x.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	before := len(h.agentCommands())
	instance, _ := x.reconcile()
	upToDate := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonHostMismatch)
	if !strings.Contains(upToDate.Message, "WindowsInstance another") {
		t.Errorf("the message is %q", upToDate.Message)
	}
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	for _, verb := range h.agentCommands()[before:] {
		if verb != "facts" {
			t.Errorf("%s was run on the host of another node", verb)
		}
	}
	if x.nodeElsewhere().Spec.Unschedulable || x.getNode().Spec.Unschedulable {
		t.Error("a node was cordoned")
	}
}

func TestHostMismatch_KeyOfOtherNodeNotAccepted(t *testing.T) {
	x := newTrial(t)
	x.asNode(listedInstance(), x.key.Hash())
	x.host.exchangeHostKey()
	presented := x.host.hostKey.PublicKey()
	x.createAnother(&v1alpha1.NodeReference{Name: elsewhere, UID: "2", Confirmed: true})
	other := &v1alpha1.WindowsInstance{}
	if err := x.Client.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: "another"}, other); err != nil {
		t.Fatal(err)
	}
	other.Status.HostKey = &v1alpha1.HostKey{Type: presented.Type(), Key: encodeKey(presented), Fingerprint: ssh.FingerprintSHA256(presented)}
	if err := x.Client.Status().Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	x.breakNode()
	instance, _ := x.reconcile()
	reachable := expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, "HostKeyChanged")
	t.Run("is reported with the name of that instance, and acceptance is not suggested", func(t *testing.T) {
		for _, text := range []string{"WindowsInstance another (10.0.0.99), Node " + elsewhere, "may have been swapped"} {
			if !strings.Contains(reachable.Message, text) {
				t.Errorf("the message lacks %q: %s", text, reachable.Message)
			}
		}
		if next := instance.Status.NextAction; strings.Contains(next, v1alpha1.AnnotationAcceptHostKey+"=") {
			t.Errorf("the next action is %q", next)
		}
	})
	t.Run("is not accepted while that instance has a Node", func(t *testing.T) {
		x.annotateInstance(v1alpha1.AnnotationAcceptHostKey, ssh.FingerprintSHA256(presented))
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, "HostKeyChanged")
		if logins, _ := x.host.loginsAndExecs(); len(logins) > 0 || instance.Status.HostKey.Key == encodeKey(presented) {
			t.Errorf("%d logins; pinned is %s", len(logins), instance.Status.HostKey.Fingerprint)
		}
	})
	t.Run("is accepted when that instance has none", func(t *testing.T) {
		if err := x.Client.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: "another"}, other); err != nil {
			t.Fatal(err)
		}
		other.Status.NodeRef = nil
		if err := x.Client.Status().Update(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		x.reconcile()
		if logins, _ := x.host.loginsAndExecs(); len(logins) == 0 {
			t.Error("the key was not accepted")
		}
	})
}
