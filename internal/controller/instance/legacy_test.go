package instance

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// legacyNode returns the Node of a listed host, as configured by an operator before version 12.
func legacyNode(name, address string) *corev1.Node {
	node := legacyMachineNode()
	node.Name = name
	node.Labels[v1alpha1.LabelBYOH] = "true"
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address},
		{Type: corev1.NodeHostName, Address: name}}
	return node
}

const dialed = "10.0.128.7" // the address of the hosts of these tests

// legacyTrial returns a trial with a listed host, the Nodes, and a disruption policy that allows no disruption.
func legacyTrial(t *testing.T, platform, hostName string, legacy ...*corev1.Node) (*trial, *agentHost, *trialGate) {
	t.Helper()
	x := newTrial(t, listedInstance())
	for _, node := range legacy {
		if err := x.Client.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	x.facts.Platform = platform
	if platform == "VSphere" {
		x.facts.Network.VXLANPort = ptr.To[int32](9898)
	}
	gate := openGate()
	x.Gate = gate
	gate.refuseAll(v1alpha1.ReasonMaxUnavailableReached)
	h := x.withAgent(func(o *fake.Options) {
		o.Name = hostName
		o.Metadata = map[string]string{"GCP": strings.ToLower(hostName), "AWS": "ip-10-0-128-7.ec2.internal"}
	})
	return x, h, gate
}

//
func TestLegacyNode_ListedHostKeepsNodeName(t *testing.T) {
	const host = "winworker-x2k4f"
	for name, c := range map[string]struct{ platform, hostName, node string }{
		"vSphere, full DNS name":             {"VSphere", host, host + ".corp.example.com"},
		"vSphere, full DNS name, upper case": {"VSphere", "WINWORKER-X2K4F", host + ".corp.example.com"},
		"vSphere, short name":                {"VSphere", host, host},
		"GCP, DNS name of the project":       {"GCP", host, host + ".c.example-project.internal"},
		"GCP, DNS name of the zone":          {"GCP", host, host + ".europe-west1-b.c.example-project.internal"},
		"GCP, short name":                    {"GCP", "WINWORKER-X2K4F", host},
		"AWS, private DNS name":              {"AWS", "EC2AMAZ-1", "ip-10-0-128-7.ec2.internal"},
		"AWS, private DNS name of the former domain of the VPC": {"AWS", "EC2AMAZ-1",
			"ip-10-0-128-7.us-east-2.compute.internal"},
		"Azure":                      {"Azure", "WINWORKER-X2K4F", host},
		"Nutanix":                    {"Nutanix", "WINWORKER-X2K4F", host},
		"bare metal":                 {"BareMetal", "WINWORKER-X2K4F", host},
		"no platform":                {"None", "WINWORKER-X2K4F", host},
		"no platform, full DNS name": {"None", host, host + ".corp.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			x, h, gate := legacyTrial(t, c.platform, c.hostName, legacyNode(c.node, dialed))
			instance := x.reconcileUntil("the adopted node to wait for its slot", hasSummary(v1alpha1.ReasonMaxUnavailableReached))
			if ref := instance.Status.NodeRef; ref == nil || ref.Name != c.node || !ref.Confirmed || ref.UID != "uid-of-the-node" {
				t.Fatalf("it has %+v: %s", ref, instance.Status.NextAction)
			}
			node := x.nodeNamed(c.node)
			if node.Annotations[v1alpha1.AnnotationInstance] != machine || node.Spec.Unschedulable {
				t.Errorf("the Node has %v, unschedulable: %t", node.Annotations, node.Spec.Unschedulable)
			}
			if slices.Contains(h.agentCommands(), "apply") || len(gate.requests) == 0 {
				t.Errorf("the host was changed without a slot: %q, asked %v", h.agentCommands(), gate.requests)
			}
			if events := strings.Join(x.popEvents(), "\n"); strings.Count(events, "NodeAdopted") != 1 {
				t.Errorf("the events are %s", events)
			}
			x.reconcile()
			if ref := x.getInstance().Status.NodeRef; ref == nil || ref.Name != c.node {
				t.Errorf("then it has %+v", ref)
			}
		})
	}
}

//
func TestLegacyNode_AmbiguousMatchLeavesHostUnchanged(t *testing.T) {
	const host = "winworker-x2k4f"
	full := host + ".corp.example.com"
	pinned := legacyNode(full, dialed)
	pinned.Annotations[v1alpha1.AnnotationHostKey] = "AAAAC3NzaC1lZDI1NTE5AAAAIGVpZ2h0LWVpZ2h0LWVpZ2h0LWVpZ2h0LWVpZ2h0LWFi"
	for name, c := range map[string]struct {
		legacy  []*corev1.Node
		reason  string
		message string
	}{
		"two Nodes have its address": {[]*corev1.Node{legacyNode(full, dialed), legacyNode(host, dialed)},
			v1alpha1.ReasonNameConflict, full},
		"one has its address, and another one its name": {[]*corev1.Node{legacyNode(full, dialed), legacyNode(host, "10.0.128.99")},
			v1alpha1.ReasonNameConflict, "10.0.128.7"},
		"a host that is off had its address before": {[]*corev1.Node{legacyNode("shop.corp.example.com", dialed)},
			v1alpha1.ReasonNameConflict, "shop.corp.example.com"},
		"one has its name, and another address": {[]*corev1.Node{legacyNode(host, "10.0.128.99")},
			v1alpha1.ReasonNameConflict, "10.0.128.99"},
		"the Node's host has shown another key": {[]*corev1.Node{pinned}, "HostKeyChanged", ""},
	} {
		t.Run(name, func(t *testing.T) {
			x, h, gate := legacyTrial(t, "VSphere", host, c.legacy...)
			instance, after := x.reconcile()
			if instance.Status.Summary != c.reason || !strings.Contains(summaryMessage(instance), c.message) {
				t.Errorf("it says %s: %s", instance.Status.Summary, summaryMessage(instance))
			}
			if instance.Status.NodeRef != nil || slices.Contains(h.agentCommands(), "apply") || len(gate.requests) > 0 || after == 0 {
				t.Errorf("it claims %+v, run were %q, asked %v, next after %s", instance.Status.NodeRef, h.agentCommands(), gate.requests, after)
			}
			for _, node := range c.legacy {
				if now := x.nodeNamed(node.Name); now.ResourceVersion != node.ResourceVersion {
					t.Errorf("Node %s was changed: %v", node.Name, now.Annotations)
				}
			}
		})
	}
	t.Run("once the Node of the host that is gone is deleted, the host becomes a node", func(t *testing.T) {
		stale := legacyNode("shop.corp.example.com", dialed)
		x, _, _ := legacyTrial(t, "VSphere", host, stale)
		instance, _ := x.reconcile()
		if !strings.Contains(instance.Status.NextAction, "Delete the Node") {
			t.Errorf("it says %s", instance.Status.NextAction)
		}
		if err := x.Client.Delete(t.Context(), stale); err != nil {
			t.Fatal(err)
		}
		if ref := x.awaitConfirmedName().Status.NodeRef; ref == nil || ref.Name != host {
			t.Errorf("it has %+v", ref)
		}
	})
}

// summaryMessage returns the message of the False condition with the summary's reason.
func summaryMessage(instance *v1alpha1.WindowsInstance) string {
	for _, condition := range instance.Status.Conditions {
		if condition.Status == metav1.ConditionFalse && condition.Reason == instance.Status.Summary {
			return condition.Message
		}
	}
	return ""
}

// a kubelet may write any address on its own Node.
func TestLegacyNode_UnrelatedNodeWithAddressNotAdopted(t *testing.T) {
	const host = "winworker-x2k4f"
	full := host + ".corp.example.com"
	ofMachine := legacyNode(full, dialed)
	delete(ofMachine.Labels, v1alpha1.LabelBYOH)
	bound := legacyNode(full, dialed)
	bound.Annotations[v1alpha1.AnnotationInstance] = "owner"
	linux := legacyNode(full, dialed)
	linux.Labels[corev1.LabelOSStable] = "linux"
	external := legacyNode(full, dialed)
	external.Status.Addresses[0].Type = corev1.NodeExternalIP
	for name, node := range map[string]*corev1.Node{
		"the node of a Machine": ofMachine, "a node of another instance": bound, "a Linux node": linux,
		"a node with that external address": external,
	} {
		t.Run(name, func(t *testing.T) {
			x, _, _ := legacyTrial(t, "VSphere", host, node)
			if ref := x.awaitConfirmedName().Status.NodeRef; ref == nil || ref.Name != host || ref.UID != "" {
				t.Errorf("it has %+v", ref)
			}
			if now := x.nodeNamed(full); now.ResourceVersion != node.ResourceVersion {
				t.Errorf("the Node was changed: %v", now.Annotations)
			}
		})
	}
}
