package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// The builds of the images, and their revisions.
const (
	refusedBuild, acceptedBuild       = "20348.169", "20348.681"
	refusedRevision, acceptedRevision = 169, 681
)

// serving is a Machine with a node in service.
type serving struct {
	machine, node string
	strategy      v1alpha1.UpgradeStrategy
	host          *testenv.Host
	connections   int
}

// If a new host would be refused, the Machine of an existing node is kept, and the node is neither drained nor
// changed. This applies to all upgrade strategies, and to nodes of the legacy operator, too.
func TestUpgrade_NodeKeptIfNewHostWouldBeRejected(t *testing.T) {
	const present, needed = "5.0.3", "5.0.4"
	l := start(t, withMachines, testenv.Options{LinuxNodes: 1})
	l.Cleanup(func() { // the control plane is shared
		ctx := context.WithoutCancel(l.Context())
		if err := l.hybridOverlay(ctx, `{"hybridClusterNetwork":[{"cidr":"10.132.0.0/14","hostPrefix":23}]}`); err != nil {
			l.Error(err)
		}
		if err := l.UpgradeCluster(ctx, present, true); err != nil {
			l.Error(err)
		}
	})
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.MaxUnavailable = ptr.To(intstr.FromInt32(4)) })
	nodes := l.withRefusedImages(l.startOperator(initial))

	line := support.ReleaseLine{Operator: 12, Minors: []support.Minor{{OpenShift: "5.0", Kubernetes: "1.36", MinPatch: 4}}}
	o := l.startOperator(patch, func(c *operator.Config) { c.Line = line })
	for _, c := range []struct {
		state    string
		begin    func() error
		reason   string
		messages []string
	}{
		{"the patch version is too low", func() error { return nil }, v1alpha1.ReasonClusterVersionUnsupported,
			[]string{"OpenShift " + present, "OpenShift " + needed}},
		{"the minor version is older", func() error { return l.UpgradeCluster(t.Context(), "4.22.9", true) }, v1alpha1.ReasonClusterVersionUnsupported,
			[]string{"OpenShift 4.22.9", "OpenShift 5.0."}},
		{"the minor version is newer", func() error { return l.UpgradeCluster(t.Context(), "5.4.0", true) }, v1alpha1.ReasonClusterVersionUnsupported,
			[]string{"OpenShift 5.4.0", "OpenShift 5.0."}},
		{"there is no hybrid network", func() error {
			if err := l.hybridOverlay(t.Context(), "null"); err != nil {
				return err
			}
			return l.UpgradeCluster(t.Context(), needed, true)
		}, v1alpha1.ReasonNetworkUnsupported, []string{"hybridClusterNetwork"}},
		{"the image is refused", func() error {
			return l.hybridOverlay(t.Context(), `{"hybridClusterNetwork":[{"cidr":"10.132.0.0/14","hostPrefix":23}]}`)
		}, v1alpha1.ReasonWindowsVersionUnsupported, []string{refusedBuild, acceptedBuild, "KB5012637"}},
	} {
		//
		if !t.Run(c.state, func(t *testing.T) {
			l := l.forSubtest(t)
			l.requireNoError(c.begin())
			for _, n := range nodes {
				l.waitForBlocked(n, c.reason, c.messages)
			}
			l.waitForReadsOnly()
			for _, n := range nodes {
				l.checkUnchanged(n)
			}
		}) {
			return
		}
	}

	//
	t.Run("with another image or an update, all are upgraded", func(t *testing.T) {
		l := l.forSubtest(t)
		for _, n := range nodes {
			if n.strategy == v1alpha1.UpgradeInPlace {
				l.installUpdate(n.host, acceptedRevision)
				continue
			}
			l.waitForEvent(n, "ImageUnsupported", refusedBuild)
			l.setImage(n.machine, "ami-"+acceptedBuild)
		}
		l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) { p.MaxUnavailable = ptr.To(intstr.FromInt32(5)) }) // MachineSets are not watched
		l.waitUntilUpgraded(patch, len(nodes), 2*time.Minute)
		left := l.machineNames()
		for _, n := range nodes {
			if kept := slices.Contains(left, n.machine); kept != (n.strategy == v1alpha1.UpgradeInPlace) {
				l.Errorf("Machine %s with strategy %s is there: %t", n.machine, n.strategy, kept)
			}
		}
	})
	l.requireNoError(o.Stop())
}

// withRefusedImages ends an operator, and returns Machines with nodes of that operator and of a legacy operator.
// They run a Windows build that is refused for new hosts.
func (l lab) withRefusedImages(o *testenv.Operator) (nodes []serving) {
	l.Helper()
	strategies := []v1alpha1.UpgradeStrategy{v1alpha1.UpgradeReplace, v1alpha1.UpgradeInPlace}
	name := func(source string, strategy v1alpha1.UpgradeStrategy) string {
		return source + "-" + strings.ToLower(string(strategy))
	}
	for _, strategy := range strategies {
		l.machineSet(name("ours", strategy), strategy, acceptedBuild)
	}
	for _, strategy := range strategies {
		l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
			_, err := l.WaitMachinesReady(ctx, name("ours", strategy), 1)
			return err
		})
	}
	l.waitUntilUpgraded(initial, len(strategies), waitTimeout)
	l.requireNoError(o.Stop())
	l.requireNoError(l.SeedLegacyCluster(l.Context(), ""))
	for _, strategy := range strategies {
		l.machineSet(name("legacy", strategy), strategy, refusedBuild)
		nodes = append(nodes, l.legacyNode(name("legacy", strategy), strategy), l.newOutdatedNode(name("ours", strategy), strategy))
	}
	for i := range nodes {
		nodes[i].connections = nodes[i].host.Machine().Journal().Count(fake.KindConnection)
	}
	return nodes
}

// machineSet creates a MachineSet with one Machine and an upgrade strategy.
func (l lab) machineSet(name string, strategy v1alpha1.UpgradeStrategy, build string) {
	l.Helper()
	l.requireNoError(l.CreateMachineSet(l.Context(), name, 1, testenv.MachineSetOptions{Image: "ami-" + build}))
	set := &machinev1.MachineSet{}
	set.Namespace, set.Name = v1alpha1.MachineNamespace, name
	l.setAnnotation(set, v1alpha1.AnnotationUpgradeStrategy, string(strategy))
}

// machineOf waits for the host of a MachineSet's Machine.
func (l lab) machineOf(set string, strategy v1alpha1.UpgradeStrategy) (n serving) {
	l.Helper()
	n.strategy = strategy
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
		return l.WaitForMachines(ctx, set, "to be there", func(found []machinev1.Machine) bool {
			if len(found) == 1 {
				n.machine = found[0].Name
			}
			return len(found) == 1
		})
	})
	l.runWithTimeout(waitTimeout, func(ctx context.Context) (err error) {
		if n.host, err = l.WaitMachineHost(ctx, n.machine); err != nil {
			return err
		}
		return n.host.Machine().WaitFor(ctx, (*fake.Machine).IsRunning)
	})
	n.node = testenv.MachineDNSName(withMachines, n.host.Machine().Addresses()[0])
	return n
}

// legacyNode returns a Machine that a legacy operator has configured as a node.
func (l lab) legacyNode(set string, strategy v1alpha1.UpgradeStrategy) serving {
	l.Helper()
	n := l.machineOf(set, strategy)
	_, err := l.SeedLegacyHost(l.Context(), n.host, testenv.LegacyOptions{Kind: testenv.LegacyContainerd, NodeName: n.node})
	l.requireNoError(err)
	return n
}

// newOutdatedNode returns a Machine with a host that loses Windows updates after it has become a node.
func (l lab) newOutdatedNode(set string, strategy v1alpha1.UpgradeStrategy) serving {
	l.Helper()
	n := l.machineOf(set, strategy)
	l.setImage(n.machine, "ami-"+refusedBuild)
	l.installUpdate(n.host, refusedRevision)
	l.awaitCondition(n.node+" to report the build", &corev1.Node{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		node := &corev1.Node{}
		err := reader.Get(ctx, client.ObjectKey{Name: n.node}, node)
		return strings.HasSuffix(node.Status.NodeInfo.KernelVersion, refusedBuild) && isInService(node), err
	})
	return n
}

// installUpdate changes the Windows revision of a host, and restarts the host without the operator.
func (l lab) installUpdate(h *testenv.Host, revision int) {
	l.Helper()
	h.Machine().InstallUpdate(revision)
	h.Machine().PowerOff()
	l.requireNoError(h.Machine().Boot(l.Context()))
}

// setImage sets the image of a Machine's MachineSet. If the image has the refused build, it is also set in the
// Machine.
func (l lab) setImage(name, image string) {
	l.Helper()
	machine, err := l.Machine(l.Context(), name)
	l.requireNoError(err)
	set := &machinev1.MachineSet{}
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKey{Namespace: machine.Namespace, Name: machine.OwnerReferences[0].Name}, set))
	l.requireNoError(l.Client.Patch(l.Context(), set, imagePatch(image, "spec", "template", "spec", "providerSpec", "value")))
	if strings.HasSuffix(image, refusedBuild) {
		l.requireNoError(l.Client.Patch(l.Context(), machine, imagePatch(image, "spec", "providerSpec", "value")))
	}
}

// imagePatch returns a patch that sets the AMI of the providerSpec at a path.
func imagePatch(image string, path ...string) client.Patch {
	var value any = map[string]any{"ami": map[string]any{"id": image}}
	for i := len(path) - 1; i >= 0; i-- {
		value = map[string]any{path[i]: value}
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("a map of texts cannot be written: %v", err))
	}
	return client.RawPatch(types.MergePatchType, data)
}

// hybridOverlay changes the configuration of OVN-Kubernetes' hybrid overlay.
func (l lab) hybridOverlay(ctx context.Context, value string) error {
	network := &unstructured.Unstructured{}
	network.SetGroupVersionKind(schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "Network"})
	network.SetName("cluster")
	patch := `{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"hybridOverlayConfig":` + value + `}}}}`
	return l.Client.Patch(ctx, network, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// waitForBlocked waits until the instance of a Machine is blocked for a reason, and checks that the node is
// nevertheless Ready.
func (l lab) waitForBlocked(n serving, reason string, messages []string) {
	l.Helper()
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
		return l.WaitForMachineInstance(ctx, n.machine, "to say "+reason, func(i *v1alpha1.WindowsInstance) bool {
			if i == nil {
				return false
			}
			held := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionUpToDate)
			if held == nil || held.Reason != reason || !meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady) {
				return false
			}
			for _, part := range messages {
				if !strings.Contains(held.Message, part) {
					return false
				}
			}
			return true
		})
	})
}

// checkUnchanged checks that a Machine and its node are unchanged.
func (l lab) checkUnchanged(n serving) {
	l.Helper()
	machine, err := l.Machine(l.Context(), n.machine)
	l.requireNoError(err)
	if !machine.DeletionTimestamp.IsZero() {
		l.Errorf("Machine %s is deleted", n.machine)
	}
	if node := l.nodeOf(n.node); !isInService(node) || node.Annotations[v1alpha1.AnnotationVersion] == releaseByName(l.T, patch).Version {
		l.Errorf("Node %s is of version %s, in service: %t", n.node, node.Annotations[v1alpha1.AnnotationVersion], isInService(node))
	}
	if got := n.host.Machine().Journal().Count(fake.KindConnection) - n.connections; got > 0 {
		l.Errorf("the host of Machine %s saw %d connections", n.machine, got)
	}
}

// waitForEvent waits for an event with the reason why a Machine is not replaced.
func (l lab) waitForEvent(n serving, check, part string) {
	l.Helper()
	l.awaitCondition("an event of "+n.machine+" with "+check, &corev1.Event{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		var events corev1.EventList
		err := reader.List(ctx, &events, client.InNamespace(l.Namespace()))
		for _, e := range events.Items {
			if e.Reason == "ReplacementPending" && e.Action == "DeleteMachine"+check && strings.Contains(e.Message, part) &&
				strings.Contains(e.Message, n.machine) {
				return true, err
			}
		}
		return false, err
	})
}
