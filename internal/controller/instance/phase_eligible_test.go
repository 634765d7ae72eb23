package instance

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// longName has 16 characters, one more than a computer name.
const longName = "winworkers-x2k4f"

//
func TestEligible_RejectedWithoutConnection(t *testing.T) {
	for name, c := range map[string]struct {
		cluster func(*nodespec.Cluster)
		reason  string
		message string
	}{
		"in a cluster with another network": {
			func(c *nodespec.Cluster) { c.Network.Type = "OpenShiftSDN" }, v1alpha1.ReasonNetworkUnsupported, "OpenShiftSDN"},
		"in a cluster without hybrid networking": {
			func(c *nodespec.Cluster) {
				c.Network.HybridOverlay = false
			}, v1alpha1.ReasonNetworkUnsupported, "hybridClusterNetwork"},
		"in a cluster of another version": {
			func(c *nodespec.Cluster) { c.Version = "4.6.1" }, v1alpha1.ReasonClusterVersionUnsupported, "4.6.1"},
		"whose Machine has a name that is no computer name": {
			func(c *nodespec.Cluster) { c.Platform = "Azure" }, v1alpha1.ReasonMachineNameTooLong, longName},
		"of a Machine on a platform that has none": {
			func(c *nodespec.Cluster) { c.Platform = "None" }, v1alpha1.ReasonPlatformUnsupported, "windows-instances"},
	} {
		t.Run("a host "+name, func(t *testing.T) {
			instance := machineInstance()
			instance.Spec.Source.Machine.Name = longName
			x := newTrial(t, instance)
			c.cluster(x.facts)
			got, after := x.reconcile()
			supported := expectCondition(t, got, v1alpha1.ConditionSupported, metav1.ConditionFalse, c.reason)
			expectCondition(t, got, v1alpha1.ConditionReady, metav1.ConditionFalse, c.reason)
			if !strings.Contains(supported.Message, c.message) || got.Status.NextAction == "" {
				t.Errorf("the message is %q, next is %q", supported.Message, got.Status.NextAction)
			}
			events := x.popEvents()
			if len(events) != 1 || !strings.Contains(events[0], "Warning "+c.reason) {
				t.Errorf("the events are %q", events)
			}
			if x.countDials() > 0 || after != 0 {
				t.Errorf("%d connections, next look in %s", x.countDials(), after)
			}
			if x.reconcile(); len(x.popEvents()) > 0 {
				t.Error("it is reported again")
			}
		})
	}
	t.Run("a long name is nothing against a host that no Machine has", func(t *testing.T) {
		instance := machineInstance()
		instance.Spec.Source = v1alpha1.Source{ConfigMapKey: longName + ".example.com"}
		x := newTrial(t, instance)
		x.facts.Platform = "Azure"
		x.host.switchOff(true)
		if x.reconcile(); x.countDials() == 0 {
			t.Error("the host was not contacted")
		}
	})
}

//
func TestEligible_NodeStaysReadyInUnsupportedCluster(t *testing.T) {
	x := newTrial(t)
	instance := machineInstance()
	x.asNode(instance, x.key.Hash())
	x.facts.Version = "4.5.0" // the spec of a host does not depend on the version
	x.facts.ServiceCIDRs = []string{"172.31.0.0/16"}
	instance, _ = x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	expectCondition(t, instance, v1alpha1.ConditionSupported, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonClusterVersionUnsupported)
	if x.countDials() > 0 || x.getNode() == nil {
		t.Errorf("%d connections, Node %v", x.countDials(), x.getNode())
	}
}

//
func TestEligible_NodeWaitsForMinimumPatchVersion(t *testing.T) {
	x := newTrial(t)
	instance := machineInstance()
	x.asNode(instance, x.key.Hash())
	x.facts.Version, x.Line = "5.0.2", lineSince(3)
	x.facts.ServiceCIDRs = []string{"172.31.0.0/16"} // so that there is something to do
	instance, after := x.reconcile()
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	held := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse,
		v1alpha1.ReasonClusterVersionUnsupported)
	if !strings.Contains(held.Message, "OpenShift 5.0.2") || !strings.Contains(held.Message, "OpenShift 5.0.3") {
		t.Errorf("it says %q, which does not name both versions", held.Message)
	}
	if x.countDials() > 0 || after != 0 {
		t.Errorf("%d connections, next look in %s", x.countDials(), after)
	}
	x.facts.Version = "5.0.3" // the version is watched
	if x.reconcile(); x.countDials() == 0 {
		t.Error("the host is not contacted once the cluster has that version")
	}
}

//
func TestEligible_UnsupportedClusterHidesNoFailedNode(t *testing.T) {
	for name, change := range map[string]func(*trial){
		"because its kubelet is silent": func(x *trial) {
			node := x.getNode()
			node.Status.Conditions[0].Status = corev1.ConditionUnknown
			if err := x.Client.Status().Update(x.t.Context(), node); err != nil {
				x.t.Fatal(err)
			}
		},
		"because it was deleted": func(x *trial) {
			if err := x.Client.Delete(x.t.Context(), x.getNode()); err != nil {
				x.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			instance := machineInstance()
			x.asNode(instance, x.key.Hash())
			x.facts.Version, x.facts.ServiceCIDRs = "4.5.0", []string{"172.31.0.0/16"}
			change(x)
			instance, _ = x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonClusterVersionUnsupported)
		})
	}
}

// lineSince returns a release line for OpenShift 5.0 from a patch version on.
func lineSince(patch uint) support.ReleaseLine {
	return support.ReleaseLine{Operator: 12, Minors: []support.Minor{{OpenShift: "5.0", Kubernetes: "1.36", MinPatch: patch}}}
}
