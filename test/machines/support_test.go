package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// waitForUnsupported waits until the instance of a Machine is unsupported for a reason, and checks that the condition
// and the event contain the parts.
func (l lab) waitForUnsupported(name, reason string, parts ...string) {
	l.Helper()
	l.checkUnsupported(l.waitForInstance(name, "to be refused as "+reason, hasSummary(reason)), reason, parts...)
}

// hasSummary returns a function that reports whether the summary of an instance is the reason.
func hasSummary(reason string) func(*v1alpha1.WindowsInstance) bool {
	return func(i *v1alpha1.WindowsInstance) bool { return i != nil && i.Status.Summary == reason }
}

// checkUnsupported checks that the condition and the event of an unsupported instance have the reason, and contain the
// parts.
func (l lab) checkUnsupported(instance *v1alpha1.WindowsInstance, reason string, parts ...string) {
	l.Helper()
	condition := meta.FindStatusCondition(instance.Status.Conditions, v1alpha1.ConditionSupported)
	if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != reason {
		l.Fatalf("condition Supported is %+v", condition)
	}
	for _, part := range parts {
		if !strings.Contains(condition.Message, part) {
			l.Errorf("the message does not say %q: %s", part, condition.Message)
		}
	}
	matches := func(event corev1.Event) bool {
		silent := func(part string) bool { return !strings.Contains(event.Message, part) }
		return event.Reason == reason && event.InvolvedObject.UID == instance.UID && !slices.ContainsFunc(parts, silent)
	}
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, fmt.Sprintf("an event %s with %q", reason, parts), &corev1.Event{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var events corev1.EventList
				err := reader.List(ctx, &events, client.InNamespace(l.Namespace()))
				return slices.ContainsFunc(events.Items, matches), err
			})
	})
}

// checkUnchanged checks that a host was not changed and has seen at most the given number of connections.
func (l lab) checkUnchanged(name string, connections int) {
	l.Helper()
	journal := l.MachineHost(name).Machine().Journal()
	if got := journal.Count(fake.KindConnection); got > connections {
		l.Errorf("the host saw %d connections", got)
	}
	if got := journal.Count(fake.KindReboot) + journal.Count(fake.KindFeature) +
		journal.Count(fake.KindHostName); got > 0 {
		l.Errorf("the host was changed: %v", journal.Entries(nil))
	}
}

func TestSupport_VSphereLimitsReportedBeforeChange(t *testing.T) {
	l := start(t, "VSphere", testenv.Options{})
	l.startOperator()
	// R-051, L-19
	t.Run("a Machine whose name does not fit a computer name", func(t *testing.T) {
		l := lab{t, l.Environment}
		l.createMachineSet("much-too-long", 1, testenv.MachineSetOptions{})
		name := l.waitForOnlyMachine("much-too-long")
		l.waitForUnsupported(name, v1alpha1.ReasonMachineNameTooLong, name, "15")
		l.checkUnchanged(name, 0)
	})
	//
	t.Run("Windows Server 2019", func(t *testing.T) {
		l := lab{t, l.Environment}
		l.createMachineSet("win2019", 1, testenv.MachineSetOptions{Image: "windows-server-2019-template"})
		name := l.waitForOnlyMachine("win2019")
		l.waitForUnsupported(name, v1alpha1.ReasonWindowsVersionUnsupported, "17763", "VSphere")
		l.checkUnchanged(name, 2)
	})
	//
	t.Run("and what it supports becomes a node beside them", func(t *testing.T) {
		l := lab{t, l.Environment}
		l.createMachineSet("win2022", 1, testenv.MachineSetOptions{})
		l.waitUntilReady("win2022", 1)
	})
}

// usualOverlay is the overlay configuration of the lab's clusters.
const usualOverlay = `{"hybridClusterNetwork":[{"cidr":"10.132.0.0/14","hostPrefix":23}]}`

// hybridOverlay changes the configuration of OVN-Kubernetes' hybrid overlay.
func (l lab) hybridOverlay(value string) {
	l.Helper()
	network := networkOperator()
	patch := `{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"hybridOverlayConfig":` + value + `}}}}`
	l.requireNoError(l.Client.Patch(context.WithoutCancel(l.Context()), network, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func TestSupport_ExhaustedPodSubnetsReported(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	l.hybridOverlay(`{"hybridClusterNetwork":[{"cidr":"10.132.0.0/23","hostPrefix":23}]}`)
	defer l.hybridOverlay(usualOverlay) // the control plane is shared
	l.startOperator()
	l.createMachineSet("first", 1, testenv.MachineSetOptions{})
	l.waitUntilReady("first", 1)

	l.createMachineSet("second", 1, testenv.MachineSetOptions{})
	waits := l.waitForInstance(l.waitForOnlyMachine("second"), "to wait for a pod subnet", hasSummary(v1alpha1.ReasonPodSubnetNotAssigned))
	if next := waits.Status.NextAction; !strings.Contains(next, "limit the number of Windows nodes to 1.") {
		t.Errorf("what to do next is %q", next)
	}

	l.hybridOverlay(usualOverlay)
	l.waitUntilReady("second", 1)
}

// R-109, L-06
func TestSupport_MissingHybridOverlayRejectedBeforeChange(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	l.hybridOverlay("null")
	restore := func() { l.hybridOverlay(usualOverlay) }
	defer restore() // the control plane is shared
	l.startOperator()
	l.createMachineSet("windows", 1, testenv.MachineSetOptions{})
	name := l.waitForOnlyMachine("windows")
	l.waitForUnsupported(name, v1alpha1.ReasonNetworkUnsupported, "hybrid", "oc patch")
	l.checkUnchanged(name, 0)

	l.followNetworkCommands(name)
	l.waitUntilReady("windows", 1)
}

//
func TestSupport_VXLANPortCanBeSetLater(t *testing.T) {
	l := start(t, "VSphere", testenv.Options{})
	usual := l.overlayConfig()
	l.hybridOverlay(`{"hybridOverlayVXLANPort":null}`)
	defer func() { l.hybridOverlay(usual) }() // the control plane is shared
	l.startOperator()
	l.createMachineSet("windows", 1, testenv.MachineSetOptions{})
	name := l.waitForOnlyMachine("windows")
	l.waitForUnsupported(name, v1alpha1.ReasonNetworkUnsupported, "VXLAN port", "oc patch")
	l.checkUnchanged(name, 0)

	l.followNetworkCommands(name)
	l.waitUntilReady("windows", 1)
}

// followNetworkCommands runs the commands that the condition Supported of a Machine's instance recommends. The
// network operator accepts no change of an overlay other than enabling and disabling it.
func (l lab) followNetworkCommands(machine string) {
	l.Helper()
	instance, err := l.MachineInstance(l.Context(), machine)
	l.requireNoError(err)
	message := meta.FindStatusCondition(instance.Status.Conditions, v1alpha1.ConditionSupported).Message
	commands := regexp.MustCompile(`oc patch networks\.operator\.openshift\.io cluster --type=merge -p '([^']+)'`).
		FindAllStringSubmatch(message, -1)
	if len(commands) == 0 {
		l.Fatalf("there is no command in %q", message)
	}
	for _, command := range commands {
		before := l.overlayConfig()
		l.requireNoError(l.Client.Patch(l.Context(), networkOperator(), client.RawPatch(types.MergePatchType, []byte(command[1]))))
		if after := l.overlayConfig(); before != "null" && after != "null" && before != after {
			l.Fatalf("the network operator refuses to change overlay %s to %s", before, after)
		}
	}
}

// overlayConfig returns the configuration of OVN-Kubernetes' hybrid overlay, or "null" if there is none.
func (l lab) overlayConfig() string {
	l.Helper()
	network := networkOperator()
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKeyFromObject(network), network))
	value, _, err := unstructured.NestedFieldNoCopy(network.Object, "spec", "defaultNetwork", "ovnKubernetesConfig", "hybridOverlayConfig")
	l.requireNoError(err)
	text, err := json.Marshal(value)
	l.requireNoError(err)
	return string(text)
}

func networkOperator() *unstructured.Unstructured {
	network := &unstructured.Unstructured{}
	network.SetGroupVersionKind(schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "Network"})
	network.SetName("cluster")
	return network
}

//
func TestSupport_ListedHostsWorkWithoutMachineAPI(t *testing.T) {
	l := start(t, "None", testenv.Options{Hosts: testenv.Hosts(1)})
	for _, name := range []string{"machines", "machinesets", "machinehealthchecks"} {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
			Kind: "CustomResourceDefinition"})
		crd.SetName(name + ".machine.openshift.io")
		l.requireNoError(client.IgnoreNotFound(l.Client.Delete(t.Context(), crd)))
	}
	l.startOperator()
	l.requireNoError(l.ListHosts(t.Context()))
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })
}

//
func TestSupport_UnreachableAPIServerReportedBeforeChange(t *testing.T) {
	l := start(t, "VSphere", testenv.Options{Hosts: testenv.Hosts(1)})
	host := l.Hosts()[0]
	restore := host.Machine().Silence("127.0.0.1") // address of the API server's internal name here
	defer restore()
	l.startOperator()
	l.requireNoError(l.ListHosts(t.Context()))
	l.inTime(func(ctx context.Context) error {
		return l.WaitForInstance(ctx, host, "to say that it does not reach the API server",
			func(i *v1alpha1.WindowsInstance) bool {
				return i != nil && i.Status.Summary == v1alpha1.ReasonAPIServerUnreachable
			})
	})
	instance, err := l.Instance(t.Context(), host.Options.Name)
	l.requireNoError(err)
	if explained := testenv.Explain(instance); !strings.Contains(explained, "127.0.0.1") || instance.Status.NextAction == "" {
		t.Errorf("the status does not say what is wrong: %s", explained)
	}
	journal := host.Machine().Journal()
	if got := journal.Count(fake.KindReboot) + journal.Count(fake.KindFeature) +
		journal.Count(fake.KindHostName); got > 0 {
		t.Errorf("the host was changed: %v", journal.Entries(nil))
	}
	restore()
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })
}
