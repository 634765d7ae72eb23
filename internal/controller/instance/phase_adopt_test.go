package instance

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
)

const legacyVersion = "10.19.0-1a2b3c4"

// legacyMachineNode returns the Node of the trial's Machine, as configured by a legacy operator.
func legacyMachineNode() *corev1.Node {
	node := readyNode("abc")
	node.Name, node.UID = "ip-10-0-0-8.example.internal", "uid-of-the-node"
	node.Annotations = map[string]string{v1alpha1.AnnotationVersion: legacyVersion, v1alpha1.AnnotationPubKeyHash: "abc",
		v1alpha1.AnnotationDesiredVersion: legacyVersion}
	node.Spec.Taints = nil
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: machineInstance().Spec.Address}}
	return node
}

// legacyMachineTrial returns a trial with the instance of a Machine to be replaced, and the Node of a legacy operator.
func legacyMachineTrial(t *testing.T, instance *v1alpha1.WindowsInstance, node *corev1.Node,
	change func(*machinev1beta1.Machine)) *trial {
	t.Helper()
	instance.Spec.UpgradeStrategy = v1alpha1.UpgradeReplace
	x := newTrial(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		machinev1beta1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	reference := instance.Spec.Source.Machine
	created := &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: reference.Namespace, Name: reference.Name, UID: reference.UID},
		Status: machinev1beta1.MachineStatus{
			NodeRef:   &corev1.ObjectReference{Name: node.Name, UID: node.UID},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: instance.Spec.Address}},
		},
	}
	if change != nil {
		change(created)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: sshkeysecret.SecretName},
		Data: map[string][]byte{sshkeysecret.SecretKey: x.private}}
	api := withIndexes(fake.NewClientBuilder().WithScheme(scheme)).WithStatusSubresource(&v1alpha1.WindowsInstance{}).WithObjects(instance, node, created, secret).Build()
	x.Client, x.Live = api, api
	return x
}

func (x *trial) nodeNamed(name string) *corev1.Node {
	x.t.Helper()
	node := &corev1.Node{}
	if err := x.Client.Get(x.t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		x.t.Fatal(err)
	}
	return node
}

//
func TestAdopt_MachineToReplaceNeedsNoConnection(t *testing.T) {
	for name, c := range map[string]struct {
		instance func(*v1alpha1.WindowsInstance)
		machine  func(*machinev1beta1.Machine)
	}{
		"the Machine names its Node":               {},
		"the Machine has its address, and no Node": {machine: func(m *machinev1beta1.Machine) { m.Status.NodeRef = nil }},
		"the operator was ended after it had claimed the name": {instance: func(i *v1alpha1.WindowsInstance) {
			i.Status.NodeRef = &v1alpha1.NodeReference{Name: legacyMachineNode().Name}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			instance := machineInstance()
			if c.instance != nil {
				c.instance(instance)
			}
			x := legacyMachineTrial(t, instance, legacyMachineNode(), c.machine)
			got, _ := x.reconcile()
			expectCondition(t, got, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonReplacementPending)
			expectCondition(t, got, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
			if ref := got.Status.NodeRef; ref == nil || ref.Name != legacyMachineNode().Name || ref.UID != "uid-of-the-node" ||
				!ref.Confirmed || got.Status.Version != legacyVersion {
				t.Errorf("Node %+v, version %s", ref, got.Status.Version)
			}
			if bound := x.nodeNamed(legacyMachineNode().Name); bound.Annotations[v1alpha1.AnnotationInstance] != machine ||
				bound.Spec.Unschedulable {
				t.Errorf("the Node has %v", bound.Annotations)
			}
			if events := strings.Join(x.popEvents(), "\n"); x.countDials() != 0 || strings.Count(events, "NodeAdopted") != 1 {
				t.Errorf("%d connections, told %s", x.countDials(), events)
			}
			again, _ := x.reconcile()
			if again.ResourceVersion != got.ResourceVersion || x.countDials() != 0 || len(x.popEvents()) > 0 {
				t.Error("the next pass does something again")
			}
		})
	}
}

func TestAdopt_UnrelatedLegacyNodeNotAdopted(t *testing.T) {
	for name, c := range map[string]struct {
		node    func(*corev1.Node)
		machine func(*machinev1beta1.Machine)
	}{
		"for a Machine that has another Node": {machine: func(m *machinev1beta1.Machine) {
			m.Status.NodeRef.Name = "another"
		}},
		"for a Machine that was made again": {machine: func(m *machinev1beta1.Machine) { m.UID = "another" }},
		"for a Machine, when it belongs to a listed host": {node: func(n *corev1.Node) {
			n.Labels[v1alpha1.LabelBYOH] = "true"
		}},
		"for a Machine, when its Node was another one": {node: func(n *corev1.Node) { n.UID = "another" }},
	} {
		t.Run(name, func(t *testing.T) {
			node := legacyMachineNode()
			x := legacyMachineTrial(t, machineInstance(), legacyMachineNode(), c.machine)
			if c.node != nil {
				x = legacyMachineTrial(t, machineInstance(), func() *corev1.Node {
					c.node(node)
					return node
				}(), func(m *machinev1beta1.Machine) {
					m.Status.NodeRef.UID = legacyMachineNode().UID
				})
			}
			instance, _ := x.reconcile()
			if bound := x.nodeNamed(node.Name).Annotations[v1alpha1.AnnotationInstance]; bound != "" ||
				instance.Status.NodeRef != nil {
				t.Errorf("it is bound to %q, and the instance has %+v", bound, instance.Status.NodeRef)
			}
		})
	}
}

func TestAdopt_ConcurrentlyBoundNodeNotAdopted(t *testing.T) {
	x := legacyMachineTrial(t, machineInstance(), legacyMachineNode(), nil)
	plain, ok := x.Client.(client.WithWatch)
	if !ok {
		t.Fatal("the client does not watch")
	}
	x.Client = interceptor.NewClient(plain, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			if node, ok := o.(*corev1.Node); ok {
				other := &corev1.Node{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(node), other); err != nil {
					return err
				}
				if other.Annotations[v1alpha1.AnnotationInstance] == "" {
					other.Annotations[v1alpha1.AnnotationInstance] = "another"
					if err := c.Update(ctx, other); err != nil {
						return err
					}
				}
			}
			return c.Patch(ctx, o, patch, options...)
		},
	})
	x.reconcile()
	if bound := x.nodeNamed(legacyMachineNode().Name).Annotations[v1alpha1.AnnotationInstance]; bound != "another" {
		t.Errorf("it is bound to %q", bound)
	}
}

func TestAdopt_FailedNodeNotReportedReady(t *testing.T) {
	x := legacyMachineTrial(t, machineInstance(), legacyMachineNode(), nil)
	x.reconcile()
	node := x.nodeNamed(legacyMachineNode().Name)
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	if err := x.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	instance, _ := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady)
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonReplacementPending)
	if x.countDials() != 0 {
		t.Errorf("%d connections", x.countDials())
	}
}

// createHostKeyList creates the legacy operator's list of host keys.
func (x *trial) createHostKeyList(key string) {
	x.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: hostKeysConfigMap},
		Data: map[string]string{machineInstance().Spec.Address: key}}
	if err := x.Client.Create(x.t.Context(), object); err != nil {
		x.t.Fatal(err)
	}
}

func TestAdopt_LegacyHostKeyEnforced(t *testing.T) {
	t.Run("another one stops the host", func(t *testing.T) {
		x := newTrial(t, machineInstance())
		x.createHostKeyList(base64.StdEncoding.EncodeToString(x.key.Signer().PublicKey().Marshal()))
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, "HostKeyChanged")
		if logins, execs := x.host.loginsAndExecs(); len(logins) > 0 || execs > 0 {
			t.Errorf("logins %v, %d execs", logins, execs)
		}
	})
	t.Run("what is no key stops before a connection, and says what to do", func(t *testing.T) {
		x := newTrial(t, machineInstance())
		x.createHostKeyList("not a key")
		instance, _ := x.reconcile()
		expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, "HostKeyChanged")
		if x.countDials() != 0 || !strings.Contains(instance.Status.NextAction, hostKeysConfigMap) {
			t.Errorf("%d connections, next %s", x.countDials(), instance.Status.NextAction)
		}
	})
	t.Run("a host that is to be removed, and was never reached, is not reached for it", func(t *testing.T) {
		instance := machineInstance()
		instance.Spec.Source = v1alpha1.Source{ConfigMapKey: instance.Spec.Address}
		instance.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		x := newTrial(t, instance)
		x.createHostKeyList(base64.StdEncoding.EncodeToString(x.key.Signer().PublicKey().Marshal()))
		if left, _ := x.reconcile(); left != nil || x.countDials() != 0 {
			t.Errorf("%d connections, left %v", x.countDials(), left)
		}
	})
}

// A Machine that no version has completely configured is not replaced, so it must not wait for a replacement.
func TestAdopt_PartlyConfiguredHostIsConfigured(t *testing.T) {
	node := legacyMachineNode()
	delete(node.Annotations, v1alpha1.AnnotationVersion)
	x := legacyMachineTrial(t, machineInstance(), node, nil)
	instance, _ := x.reconcile()
	if bound := x.nodeNamed(node.Name).Annotations[v1alpha1.AnnotationInstance]; bound != machine {
		t.Errorf("it is bound to %q", bound)
	}
	if instance.Status.Summary == v1alpha1.ReasonReplacementPending || x.countDials() == 0 {
		t.Errorf("%d connections, and it says %s", x.countDials(), instance.Status.Summary)
	}
}

// A kubelet may write annotations, labels and addresses on its own Node.
func TestAdopt_ForgedNodeBlocksNoHost(t *testing.T) {
	spoofed := legacyMachineNode()
	spoofed.Name = "liar"
	spoofed.Annotations[v1alpha1.AnnotationHostKey] = base64.StdEncoding.EncodeToString(newTrial(t).key.Signer().PublicKey().Marshal())
	x := legacyMachineTrial(t, machineInstance(), spoofed, func(m *machinev1beta1.Machine) { m.Status.NodeRef = nil })
	owner := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "owner"}}
	owner.Spec = v1alpha1.WindowsInstanceSpec{Address: "10.0.0.99", Source: v1alpha1.Source{ConfigMapKey: "10.0.0.99"}}
	if err := x.Client.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	owner.Status.NodeRef = &v1alpha1.NodeReference{Name: "liar", Confirmed: true}
	if err := x.Client.Status().Update(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	instance, _ := x.reconcile()
	if ref := instance.Status.NodeRef; ref != nil && ref.Name == "liar" ||
		x.nodeNamed("liar").Annotations[v1alpha1.AnnotationInstance] != "" {
		t.Errorf("it is taken over: %+v", ref)
	}
	if reason := instance.Status.Summary; reason == v1alpha1.ReasonNameConflict ||
		reason == "HostKeyChanged" || x.countDials() == 0 {
		t.Errorf("the other host is held up: %s, %s", reason, instance.Status.NextAction)
	}
}

// An operator before version 12 that was stopped during an upgrade leaves its lock, and a cordoned node.
func TestAdopt_LegacyCordonAdoptedUserCordonKept(t *testing.T) {
	for name, locked := range map[string]bool{"the older operator's": true, "a user's, which stays": false} {
		t.Run(name, func(t *testing.T) {
			node := legacyMachineNode()
			node.Spec.Unschedulable = true
			if locked {
				node.Labels[v1alpha1.LabelUpgrading] = "true"
			}
			x := legacyMachineTrial(t, machineInstance(), node, nil)
			x.reconcile()
			bound := x.nodeNamed(node.Name)
			if bound.Annotations[v1alpha1.AnnotationInstance] != machine || !bound.Spec.Unschedulable || nodes.IsCordoned(bound) != locked {
				t.Fatalf("unschedulable %t, annotations %v", bound.Spec.Unschedulable, bound.Annotations)
			}
			if err := x.newDependencies().nodes.Activate(t.Context(), x.getInstance(), bound, "abc"); err != nil {
				t.Fatal(err)
			}
			if after := x.nodeNamed(node.Name); after.Spec.Unschedulable == locked || after.Labels[v1alpha1.LabelUpgrading] != "" {
				t.Errorf("up to date, it has unschedulable %t, labels %v", after.Spec.Unschedulable, after.Labels)
			}
		})
	}
}

// Any client with permission to label Nodes can set the label.
func TestAdopt_LegacyLabelDoesNotUncordon(t *testing.T) {
	x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, false)
	x.changeNode(func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Labels[v1alpha1.LabelUpgrading] = "true"
	})
	x.reconcile()
	node := x.getNode()
	if _, locked := node.Labels[v1alpha1.LabelUpgrading]; locked || !node.Spec.Unschedulable {
		t.Errorf("unschedulable %t, labels %v", node.Spec.Unschedulable, node.Labels)
	}
	if node.Annotations[v1alpha1.AnnotationVersion] != x.Version {
		t.Errorf("the node was not taken into service with version %s: %v", x.Version, node.Annotations)
	}
}
