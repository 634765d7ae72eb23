package instance

import (
	"context"
	"slices"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

const cloudName = "ip-10-0-128-7.ec2.internal"

func withAWSMetadata(o *fake.Options) { o.Metadata = map[string]string{"AWS": cloudName} }

// listedInstance returns the instance of a host in windows-instances.
func listedInstance() *v1alpha1.WindowsInstance {
	instance := machineInstance()
	instance.Spec.Source = v1alpha1.Source{ConfigMapKey: instance.Spec.Address}
	return instance
}

// createInstance stores the instance with its status.
func (x *trial) createInstance(instance *v1alpha1.WindowsInstance) {
	x.t.Helper()
	stored := instance.DeepCopy()
	if err := x.Client.Create(x.t.Context(), stored); err != nil {
		x.t.Fatal(err)
	}
	stored.Status = instance.Status
	if err := x.Client.Status().Update(x.t.Context(), stored); err != nil {
		x.t.Fatal(err)
	}
}

// awaitConfirmedName reconciles until the node name is confirmed, at most eleven times.
func (x *trial) awaitConfirmedName() *v1alpha1.WindowsInstance {
	x.t.Helper()
	instance, _ := x.reconcile()
	for range 10 {
		if instance.Status.NodeRef != nil && instance.Status.NodeRef.Confirmed &&
			instance.Status.Summary != v1alpha1.ReasonInProgress {
			break
		}
		instance, _ = x.reconcile()
	}
	return instance
}

//
func TestCloudName_NamesNodeOnAWS(t *testing.T) {
	for name, instance := range map[string]*v1alpha1.WindowsInstance{"of a Machine": machineInstance(),
		"of windows-instances": listedInstance()} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, instance)
			h := x.withAgent(withAWSMetadata)
			got := x.awaitConfirmedName()
			if ref := got.Status.NodeRef; ref == nil || ref.Name != cloudName || !ref.Confirmed {
				t.Fatalf("it has %+v: %s", ref, got.Status.Summary)
			}
			if got.Status.Host.Name != "EC2AMAZ-1" || slices.ContainsFunc(h.agentCommands(), func(verb string) bool {
				return verb == "remove"
			}) {
				t.Errorf("the computer is named %s", got.Status.Host.Name)
			}
		})
	}
}

func TestCloudName_HostWithoutCloudNameNotChanged(t *testing.T) {
	x := newTrial(t, listedInstance())
	h := x.withAgent()
	for range 3 {
		instance, after := x.reconcile()
		condition := expectCondition(t, instance, v1alpha1.ConditionSupported, metav1.ConditionFalse, v1alpha1.ReasonCloudNameUnknown)
		if !strings.Contains(condition.Message, "metadata service of AWS") || !strings.Contains(instance.Status.NextAction,
			"169.254.169.254") ||
			!strings.Contains(instance.Status.NextAction, "only machines of that cloud") {
			t.Errorf("it says %q, %q", condition.Message, instance.Status.NextAction)
		}
		if instance.Status.NodeRef != nil || after == 0 {
			t.Errorf("it claims %+v; the next look is after %s", instance.Status.NodeRef, after)
		}
		x.clock.Step(after)
	}
	if got := slices.Compact(h.agentCommands()); !slices.Equal(got, []string{"facts"}) {
		t.Errorf("run were %q", got)
	}
	if len(h.agentCommands()) != 3 {
		t.Errorf("it was asked %d times in 3 attempts", len(h.agentCommands()))
	}
}

//
func TestCloudName_MismatchWithMachineGetsNoCertificate(t *testing.T) {
	x := newTrial(t, machineInstance(), &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: machine, UID: "machine-uid"},
		Status: machinev1beta1.MachineStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "10.0.128.9"}, {Type: corev1.NodeInternalDNS,
				Address: "ip-10-0-128-9.ec2.internal"},
		}},
	})
	h := x.withAgent(withAWSMetadata)
	instance, _ := x.reconcile()
	condition := expectCondition(t, instance, v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	if !strings.Contains(condition.Message, cloudName) || !strings.Contains(condition.Message,
		"ip-10-0-128-9.ec2.internal") {
		t.Errorf("it says %q", condition.Message)
	}
	if instance.Status.NodeRef != nil || !slices.Equal(h.agentCommands(), []string{"facts"}) {
		t.Errorf("it claims %+v; run were %q", instance.Status.NodeRef, h.agentCommands())
	}
}

// An earlier version named nodes on AWS after their computers. Under another name, the hosts would become second
// nodes.
func TestCloudName_ExistingNodeKeepsName(t *testing.T) {
	for name, metadata := range map[string]map[string]string{"the cloud gives the machine another": {"AWS": cloudName},
		"the cloud does not say": nil} {
		t.Run(name, func(t *testing.T) {
			instance := listedInstance()
			instance.Status.NodeRef = &v1alpha1.NodeReference{Name: "ec2amaz-1", UID: "node-uid", Confirmed: true}
			node := readyNode("abc")
			node.Name = "ec2amaz-1"
			x := newTrial(t, node)
			x.createInstance(instance)
			h := x.withAgent(func(o *fake.Options) { o.Metadata = metadata })
			got := x.awaitConfirmedName()
			if ref := got.Status.NodeRef; ref == nil || ref.Name != "ec2amaz-1" || ref.UID != "node-uid" {
				t.Errorf("it has %+v", ref)
			}
			if !slices.Contains(h.agentCommands(), "apply") && !slices.Contains(h.agentCommands(), "plan") {
				t.Errorf("it is not gone on with: %q, %s", h.agentCommands(), got.Status.Summary)
			}
		})
	}
}

// Operators before version 12 named nodes on AWS by their private DNS names. R-153, D-7
func TestCloudName_LegacyNodeAdoptedByCloudName(t *testing.T) {
	node := legacyMachineNode()
	node.Name = cloudName
	node.Labels[v1alpha1.LabelBYOH] = "true"
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.128.7"}} // the last reached address
	x := newTrial(t, listedInstance(), node)
	x.withAgent(withAWSMetadata)
	instance := x.awaitConfirmedName()
	if ref := instance.Status.NodeRef; ref == nil || ref.Name != cloudName ||
		ref.UID != string(node.UID) || !ref.Confirmed {
		t.Errorf("it has %+v: %s", ref, instance.Status.Summary)
	}
	if bound := x.nodeNamed(cloudName).Annotations[v1alpha1.AnnotationInstance]; bound != machine {
		t.Errorf("the Node belongs to %q", bound)
	}
}

// With another domain in the DHCP options of the VPC, the cloud reports another name. Under that name, the host
// would be a second node, and the first node would be neither drained nor counted.
func TestCloudName_ChangedCloudNameKeepsNodeName(t *testing.T) {
	metadata := map[string]string{"AWS": machine}
	x, h, gate := nodeInService(t, "AWS", func(o *fake.Options) { o.Metadata = metadata })
	metadata["AWS"] = "ip-10-0-128-7.corp.example"
	gate.refuseAll(v1alpha1.ReasonMaxUnavailableReached)
	x.facts.Proxy = nodespec.Proxy{HTTP: "http://proxy.example.com:3128", NoProxy: ".cluster.local"}
	named := func(instance *v1alpha1.WindowsInstance) {
		t.Helper()
		if ref := instance.Status.NodeRef; ref == nil || ref.Name != machine || ref.UID != "node-uid" || !ref.Confirmed {
			t.Fatalf("it has %+v", ref)
		}
	}
	instance, _ := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonMaxUnavailableReached)
	named(instance)
	if len(gate.requests) == 0 || h.hasProxy("containerd") {
		t.Fatalf("asked %v, has the proxy %t", gate.requests, h.hasProxy("containerd"))
	}
	gate.closed = false
	named(x.reconcileUntil("the change", hasSummary(v1alpha1.ReasonReady)))
	if events := x.popEvents(); !slices.ContainsFunc(events, func(e string) bool {
		return strings.Contains(e, "DrainStarted") && strings.Contains(e, "Node "+machine)
	}) {
		t.Errorf("the node was not drained: %q", events)
	}
	if !h.hasProxy("containerd") || !slices.Equal(gate.released, []string{machine}) {
		t.Errorf("it was not changed, or keeps its turn: %v", gate.released)
	}
}

//
func TestCloudName_NameOfProvisioningMachineNotClaimed(t *testing.T) {
	provisioning := &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: "master-3", UID: "another-uid"},
		Status: machinev1beta1.MachineStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalDNS,
			Address: cloudName}}},
	}
	x := newTrial(t, listedInstance(), provisioning)
	h := x.withAgent(withAWSMetadata)
	instance, _ := x.reconcile()
	condition := expectCondition(t, instance, v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	if !strings.Contains(condition.Message, "master-3") || instance.Status.NodeRef != nil ||
		slices.Contains(h.agentCommands(), "apply") {
		t.Errorf("it says %q, claims %+v; run were %q", condition.Message, instance.Status.NodeRef, h.agentCommands())
	}
}

func TestCloudName_MissingMachineAPIIsNoError(t *testing.T) {
	kind := machinev1beta1.GroupVersion.WithKind("MachineList").GroupKind()
	for name, missing := range map[string]error{
		"the API server does not know the kind": &meta.NoKindMatchError{GroupKind: kind},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, listedInstance())
			x.Live = interceptor.NewClient(x.Client.(client.WithWatch), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, machines := list.(*machinev1beta1.MachineList); machines {
						return missing
					}
					return c.List(ctx, list, options...)
				},
			})
			x.withAgent(withAWSMetadata)
			if ref := x.awaitConfirmedName().Status.NodeRef; ref == nil || !ref.Confirmed {
				t.Errorf("it has %+v", ref)
			}
		})
	}
}
