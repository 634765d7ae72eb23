package instance

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

const buildRefused, buildAccepted = "10.0.20348.169", "10.0.20348.681"

// reportsBuild reports a Windows build on a Node, as the kubelet does.
func (x *trial) reportsBuild(node, build string) {
	x.t.Helper()
	n := x.nodeNamed(node)
	n.Status.NodeInfo.OSImage, n.Status.NodeInfo.KernelVersion = "Windows Server 2022 Datacenter", build
	if err := x.Client.Status().Update(x.t.Context(), n); err != nil {
		if err = x.Client.Update(x.t.Context(), n); err != nil {
			x.t.Fatal(err)
		}
	}
}

// refusals are the states in which a new host would be refused, with texts of the status.
var refusals = map[string]struct {
	begin    func(x *trial, node string)
	end      func(x *trial, node string)
	reason   string
	messages []string
}{
	"a patch version that is too low": {
		begin:  func(x *trial, _ string) { x.facts.Version, x.Line = "5.0.2", lineSince(3) },
		reason: v1alpha1.ReasonClusterVersionUnsupported, messages: []string{"OpenShift 5.0.2", "OpenShift 5.0.3"},
	},
	"an older minor version": {
		begin:  func(x *trial, _ string) { x.facts.Version = "4.19.9" },
		reason: v1alpha1.ReasonClusterVersionUnsupported, messages: []string{"OpenShift 4.19.9", "OpenShift 4.20, "},
	},
	"a newer minor version": {
		begin:  func(x *trial, _ string) { x.facts.Version = "5.5.0" },
		reason: v1alpha1.ReasonClusterVersionUnsupported, messages: []string{"OpenShift 5.5.0", "OpenShift 4.20, "},
	},
	"no hybrid network": {
		begin:  func(x *trial, _ string) { x.facts.Network.HybridOverlay = false },
		reason: v1alpha1.ReasonNetworkUnsupported, messages: []string{"hybridClusterNetwork"},
	},
	"an image that is refused": {
		begin:  func(x *trial, node string) { x.reportsBuild(node, buildRefused) },
		end:    func(x *trial, node string) { x.reportsBuild(node, buildAccepted) },
		reason: v1alpha1.ReasonWindowsVersionUnsupported, messages: []string{buildRefused, buildAccepted, "KB5012637"},
	},
}

// nodesInService create the instance of a Machine with a node that another version of the operator has
// configured, and return the name of the node.
var nodesInService = map[string]func(*testing.T, v1alpha1.UpgradeStrategy) (*trial, string){
	"a node of this operator": func(t *testing.T, strategy v1alpha1.UpgradeStrategy) (*trial, string) {
		return newUpgradeTrial(t, strategy, true), machine
	},
	"a node of a legacy operator": func(t *testing.T, strategy v1alpha1.UpgradeStrategy) (*trial, string) {
		x := legacyMachineTrial(t, machineInstance(), legacyMachineNode(), nil)
		x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.UpgradeStrategy = strategy })
		return x, legacyMachineNode().Name
	},
}

// If a new host would be refused, no Machine is deleted, no node is drained and no host is changed.
func TestRefusal_NodeInServiceNotChanged(t *testing.T) {
	for owner, begin := range nodesInService {
		for state, c := range refusals {
			for _, strategy := range []v1alpha1.UpgradeStrategy{v1alpha1.UpgradeReplace, v1alpha1.UpgradeInPlace} {
				t.Run(owner+", "+string(strategy)+", "+state, func(t *testing.T) {
					x, node := begin(t, strategy)
					gate := openGate()
					x.Gate = gate
					served := *x.facts
					c.begin(x, node)
					var instance *v1alpha1.WindowsInstance
					for range 3 {
						instance, _ = x.reconcile()
						held := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, c.reason)
						for _, part := range c.messages {
							if !strings.Contains(held.Message, part) {
								t.Errorf("the message is %q, without %q", held.Message, part)
							}
						}
					}
					expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
					if supported := meta.FindStatusCondition(instance.Status.Conditions, v1alpha1.ConditionSupported); supported.Status == metav1.ConditionFalse {
						t.Errorf("Supported is False: %s", supported.Message)
					}
					if n := x.nodeNamed(node); n.Spec.Unschedulable || len(gate.requests) > 0 || x.countDials() > 0 {
						t.Errorf("unschedulable %t, asked for %v, %d connections", n.Spec.Unschedulable, gate.requests, x.countDials())
					}
					// A MachineSet with another image replaces the Machine, but cannot change the cluster.
					byImage := strategy == v1alpha1.UpgradeReplace && c.reason == v1alpha1.ReasonWindowsVersionUnsupported
					if awaits := instance.Status.ReplacementVersion == x.Version; awaits != byImage {
						t.Errorf("it awaits version %q", instance.Status.ReplacementVersion)
					}

					*x.facts, x.Line = served, lineSince(0)
					if c.end != nil {
						c.end(x, node)
					}
					instance, _ = x.reconcile()
					if replaced := instance.Status.Summary == v1alpha1.ReasonReplacementPending; replaced != (strategy == v1alpha1.UpgradeReplace) ||
						!replaced && x.countDials() == 0 {
						t.Errorf("then it says %s, after %d connections", instance.Status.Summary, x.countDials())
					}
				})
			}
		}
	}
}

//
func TestRefusal_RecoveredNodeIsReady(t *testing.T) {
	x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, true)
	x.facts.Version = "5.5.0"
	x.breakNode()
	instance, _ := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonClusterVersionUnsupported)
	node := x.getNode()
	node.Status.Conditions[0].Status = corev1.ConditionTrue
	if err := x.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	instance, _ = x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	expectCondition(t, instance, v1alpha1.ConditionSupported, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonClusterVersionUnsupported)
}

func TestRefusal_NodeOfRecreatedInstanceIsReady(t *testing.T) {
	x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, true)
	forgotten := x.getInstance()
	if err := x.Client.Delete(t.Context(), forgotten); err != nil {
		t.Fatal(err)
	}
	again := machineInstance()
	again.Spec = forgotten.Spec
	x.createInstance(again)
	x.facts.Version = "5.5.0"
	instance, _ := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonClusterVersionUnsupported)
}

// A kubelet that does not report has the build from before a Windows update on its Node.
func TestRefusal_FailedNodeIsCheckedOnHost(t *testing.T) {
	x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, true)
	x.reportsBuild(machine, buildRefused)
	x.breakNode()
	if x.reconcile(); x.countDials() == 0 {
		t.Error("the host was not contacted")
	}
}

// D-8
func TestRefusal_KeyRecordedDespiteUnsupportedBuild(t *testing.T) {
	x := newTrial(t)
	x.asNode(machineInstance(), "another")
	x.reportsBuild(machine, buildRefused)
	instance, _ := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if hash := x.getNode().Annotations[v1alpha1.AnnotationPubKeyHash]; hash != x.key.Hash() || instance.Status.PublicKeyHash != hash {
		t.Errorf("the Node has key %s, the instance %s", hash, instance.Status.PublicKeyHash)
	}
}

// lacksUpdates makes a host run an older Windows build.
func lacksUpdates(t *testing.T, x *trial, h *agentHost, revision int) {
	t.Helper()
	x.forgetInstance(client.ObjectKey{Namespace: operatorNamespace, Name: machine})
	h.machine.InstallUpdate(revision)
	h.machine.PowerOff()
	if err := h.machine.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// D-8
func TestRefusal_NodeBelowMinimumBuildStaysReady(t *testing.T) {
	x, h, gate := nodeInService(t, "None")
	lacksUpdates(t, x, h, 169)
	x.facts.Proxy = nodespec.Proxy{HTTP: "http://proxy.example.com:3128", NoProxy: ".cluster.local"} // so that there is something to do
	commands := len(h.agentCommands())
	for range 3 {
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		held := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonWindowsVersionUnsupported)
		if !strings.Contains(held.Message, buildRefused) || !strings.Contains(instance.Status.NextAction, "Update Windows") {
			t.Errorf("it says %q, next %q", held.Message, instance.Status.NextAction)
		}
	}
	if verbs := h.agentCommands()[commands:]; slices.ContainsFunc(verbs, func(verb string) bool { return verb != "facts" }) {
		t.Errorf("on the host, %q was run", verbs)
	}
	if len(gate.requests) > 0 || x.getNode().Spec.Unschedulable {
		t.Errorf("asked for %v, unschedulable %t", gate.requests, x.getNode().Spec.Unschedulable)
	}

	t.Run("a requested restart is done, because an update of Windows needs it", func(t *testing.T) {
		x.reportsBuild(machine, buildRefused)
		boot := h.machine.BootID()
		node := x.getNode()
		requestReboot(node)
		if err := x.Client.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		x.reconcileUntil("the restart", func(*v1alpha1.WindowsInstance) bool { return h.machine.BootID() != boot })
		if err := h.machine.WaitFor(t.Context(), (*fake.Machine).IsRunning); err != nil {
			t.Fatal(err)
		}
		// The update was not installed.
		instance := x.reconcileUntil("the end of the restart", func(i *v1alpha1.WindowsInstance) bool {
			return i.Status.RequestedReboot == nil && i.Status.Summary == v1alpha1.ReasonWindowsVersionUnsupported
		})
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		node = x.getNode()
		if _, rebootRequired := node.Annotations[v1alpha1.AnnotationRebootRequired]; rebootRequired || node.Spec.Unschedulable || len(gate.held) > 0 {
			t.Errorf("the Node has %v, unschedulable %t, held %v", node.Annotations, node.Spec.Unschedulable, gate.held)
		}
	})
	t.Run("and with the update it is changed", func(t *testing.T) {
		lacksUpdates(t, x, h, 681)
		x.reportsBuild(machine, buildAccepted)
		x.reconcileUntil("the change", hasSummary(v1alpha1.ReasonReady))
		if !h.hasProxy("containerd") {
			t.Error("the setting is not on the host")
		}
	})
}

// D-8
func TestRefusal_LegacyNodeBelowMinimumBuildAdopted(t *testing.T) {
	legacy := func(x *trial, address string) *corev1.Node {
		node := legacyMachineNode()
		node.Name = machine
		node.Labels[v1alpha1.LabelBYOH] = "true"
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		if err := x.Client.Create(x.t.Context(), node); err != nil {
			x.t.Fatal(err)
		}
		return node
	}
	begin := func(t *testing.T) (*trial, *agentHost) {
		x := newTrial(t, listedInstance())
		x.facts.Platform = "None"
		h := x.withAgent(func(o *fake.Options) {
			o.Name, o.System = machine, fake.WindowsServer2022()
			o.System.Revision = 169
		})
		return x, h
	}
	t.Run("its own", func(t *testing.T) {
		x, h := begin(t)
		node := legacy(x, "10.0.128.7")
		x.reconcile()
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonWindowsVersionUnsupported)
		if ref := instance.Status.NodeRef; ref == nil || ref.Name != machine || ref.UID != string(node.UID) || instance.Status.Version != legacyVersion {
			t.Errorf("it has Node %+v, version %s", ref, instance.Status.Version)
		}
		if slices.Contains(h.agentCommands(), "apply") || x.getNode().Spec.Unschedulable {
			t.Errorf("run were %q, unschedulable %t", h.agentCommands(), x.getNode().Spec.Unschedulable)
		}
	})
	t.Run("a host without such a Node is refused, and claims no name", func(t *testing.T) {
		x, _ := begin(t)
		legacy(x, "10.0.99.99")
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionSupported, metav1.ConditionFalse, v1alpha1.ReasonWindowsVersionUnsupported)
		expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWindowsVersionUnsupported)
		if instance.Status.NodeRef != nil || x.getNode().Annotations[v1alpha1.AnnotationInstance] != "" {
			t.Errorf("it has %+v, and the Node %v", instance.Status.NodeRef, x.getNode().Annotations)
		}
	})
}

// D-8
func TestActivate_MissingKB4586793IsAdvice(t *testing.T) {
	x, _, _ := nodeInService(t, "None", func(o *fake.Options) {
		o.System = fake.WindowsServer2019()
		o.System.Revision = 1457
	})
	instance := &v1alpha1.WindowsInstance{}
	if err := x.Client.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: machine}, instance); err != nil {
		t.Fatal(err)
	}
	ready := expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	for _, part := range []string{"10.0.17763.1457", "direct server return", "KB4586793"} {
		if !strings.Contains(ready.Message, part) {
			t.Errorf("it says %q, without %q", ready.Message, part)
		}
	}
}
