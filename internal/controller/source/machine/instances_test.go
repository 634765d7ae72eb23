package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/source"
)

const namespace = "wmco"

type edit func(*machinev1beta1.Machine)

// newWindowsMachine returns a Windows Machine that is provisioned at 10.0.0.1, with edits.
func newWindowsMachine(name string, edits ...edit) *machinev1beta1.Machine {
	m := &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.MachineNamespace, Name: name, UID: types.UID("uid-of-" + name),
			Labels: map[string]string{v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows},
		},
	}
	withPhase(machinev1beta1.PhaseProvisioned)(m)
	withAddresses(internalIP("10.0.0.1"))(m)
	for _, e := range edits {
		e(m)
	}
	return m
}

func withPhase(phase string) edit { return func(m *machinev1beta1.Machine) { m.Status.Phase = &phase } }

func noPhase(m *machinev1beta1.Machine) { m.Status.Phase = nil }

func withUID(uid string) edit { return func(m *machinev1beta1.Machine) { m.UID = types.UID(uid) } }

func withLabel(key, value string) edit {
	return func(m *machinev1beta1.Machine) { m.Labels[key] = value }
}

func removeOSLabel(m *machinev1beta1.Machine) { delete(m.Labels, v1alpha1.LabelMachineOSID) }

func markDeleted(m *machinev1beta1.Machine) {
	m.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func withAddresses(addresses ...corev1.NodeAddress) edit {
	return func(m *machinev1beta1.Machine) { m.Status.Addresses = addresses }
}

func addressOfType(kind corev1.NodeAddressType) func(string) corev1.NodeAddress {
	return func(a string) corev1.NodeAddress { return corev1.NodeAddress{Type: kind, Address: a} }
}

var (
	internalIP  = addressOfType(corev1.NodeInternalIP)
	internalDNS = addressOfType(corev1.NodeInternalDNS)
	externalIP  = addressOfType(corev1.NodeExternalIP)
	externalDNS = addressOfType(corev1.NodeExternalDNS)
	hostNameOf  = addressOfType(corev1.NodeHostName)
)

// instanceOf returns the instance that is created for a Machine.
func instanceOf(platform string, machine *machinev1beta1.Machine) v1alpha1.WindowsInstance {
	change, ok := newInstance(settings{namespace: namespace, platform: platform}, machine)
	if !ok {
		panic("the Machine gets no instance")
	}
	return *change.After
}

func list(machines ...*machinev1beta1.Machine) []*machinev1beta1.Machine { return machines }

// expectOneChange returns the single resulting change.
func expectOneChange(t *testing.T, machines []*machinev1beta1.Machine, present ...v1alpha1.WindowsInstance) source.Change {
	t.Helper()
	result, conflicts := diffInstances(settings{namespace: namespace, platform: "AWS"}, machines, present)
	if len(result) != 1 || len(conflicts) != 0 {
		t.Fatalf("changes are %+v, names taken of %v; want one change", result, conflicts)
	}
	return result[0]
}

func expectNoChange(t *testing.T, machines []*machinev1beta1.Machine, present ...v1alpha1.WindowsInstance) {
	t.Helper()
	if result, conflicts := diffInstances(settings{namespace: namespace, platform: "AWS"}, machines, present); len(result) != 0 ||
		len(conflicts) != 0 {
		t.Errorf("changes are %+v, names taken of %v; want none", result, conflicts)
	}
}

//
func TestDiffInstances_CreatesInstanceForProvisionedMachine(t *testing.T) {
	for name, test := range map[string]struct {
		machine *machinev1beta1.Machine
		want    bool
	}{
		"when it is provisioned and has an address": {newWindowsMachine("a"), true},
		"when it runs and has an address": {newWindowsMachine("a", withPhase(machinev1beta1.PhaseRunning)),
			true},
		"not while it is provisioning": {newWindowsMachine("a", withPhase(machinev1beta1.PhaseProvisioning),
			withAddresses()), false},
		"not while it is provisioning, also with an address": {newWindowsMachine("a", withPhase(machinev1beta1.PhaseProvisioning)),
			false},
		"not before it has a phase":        {newWindowsMachine("a", noPhase), false},
		"not in a phase that nobody knows": {newWindowsMachine("a", withPhase("Hibernating")), false},
		"not while it has no address":      {newWindowsMachine("a", withAddresses()), false},
		"not once it has failed": {newWindowsMachine("a", withPhase(machinev1beta1.PhaseFailed)),
			false},
		"not while it is being deleted": {newWindowsMachine("a", withPhase(machinev1beta1.PhaseDeleting)),
			false},
		"not with a deletion timestamp, whatever its phase": {newWindowsMachine("a", markDeleted), false},
		"not when it is to be ignored": {newWindowsMachine("a", withLabel(v1alpha1.LabelIgnore, "true")),
			false},
		"when it is not to be ignored": {newWindowsMachine("a", withLabel(v1alpha1.LabelIgnore, "false")),
			true},
		"not without the label": {newWindowsMachine("a", removeOSLabel), false},
		"not when it is a Linux Machine": {newWindowsMachine("a",
			withLabel(v1alpha1.LabelMachineOSID, "Linux")), false},
		"not when it is of the control plane, whatever its OS label": {newWindowsMachine("a", withLabel(
			"machine.openshift.io/cluster-api-machine-role", "master")),
			false},
	} {
		t.Run(name, func(t *testing.T) {
			if !test.want {
				expectNoChange(t, list(test.machine))
				return
			}
			change := expectOneChange(t, list(test.machine))
			if !change.IsCreation() || change.After.Spec.DesiredState != v1alpha1.DesiredStateNode {
				t.Errorf("the change is %+v", change)
			}
		})
	}
}

func TestDiffInstances_InstanceCreatedFromMachine(t *testing.T) {
	worker := map[string]string{"node-role.kubernetes.io/worker": "", "disk": "fast"}
	machine := newWindowsMachine("win-abcde", func(m *machinev1beta1.Machine) {
		m.Spec.Labels = worker
		m.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoExecute}}
	})
	t.Run("it has name, reference, labels and taints of the Machine", func(t *testing.T) {
		instance := expectOneChange(t, list(machine)).After
		if instance.Name != "win-abcde" || instance.Namespace != namespace ||
			instance.Labels[v1alpha1.LabelSource] != v1alpha1.SourceMachine {
			t.Errorf("metadata is %+v", instance.ObjectMeta)
		}
		if *instance.Spec.Source.Machine != (v1alpha1.MachineReference{Namespace: v1alpha1.MachineNamespace,
			Name: "win-abcde", UID: "uid-of-win-abcde"}) {
			t.Errorf("the reference is %+v", instance.Spec.Source.Machine)
		}
		if node := instance.Spec.Node; node == nil || fmt.Sprint(node.Labels) != fmt.Sprint(worker) ||
			len(node.Taints) != 1 || node.Taints[0].Key != "gpu" {
			t.Errorf("the node is to carry %+v", node)
		}
	})
	t.Run("a Machine without labels and taints asks for none", func(t *testing.T) {
		if node := expectOneChange(t, list(newWindowsMachine("a"))).After.Spec.Node; node != nil {
			t.Errorf("the node is to carry %+v", node)
		}
	})
	for platform, want := range map[string]struct{ user, host string }{
		"AWS":     {"Administrator", ""},
		"Azure":   {"capi", ""},
		"GCP":     {"Administrator", ""},
		"VSphere": {"Administrator", "win-abcde"},
		"Nutanix": {"Administrator", "win-abcde"},
		"None":    {"Administrator", ""},
	} {
		t.Run("on "+platform+" it is logged in to as "+want.user, func(t *testing.T) {
			spec := instanceOf(platform, machine).Spec
			if spec.Username != want.user || spec.HostName != want.host {
				t.Errorf("user %q, host name %q; want %q and %q", spec.Username, spec.HostName, want.user, want.host)
			}
		})
	}
	t.Run("a name that no host can have is not asked for", func(t *testing.T) {
		if spec := instanceOf("VSphere", newWindowsMachine(strings.Repeat("a", 64))).Spec; spec.HostName != "" {
			t.Errorf("the host name is %q", spec.HostName)
		}
	})
}

func TestHostAddress(t *testing.T) {
	for name, test := range map[string]struct {
		present   string
		addresses []corev1.NodeAddress
		want      string
	}{
		"is the first internal IPv4 address": {"", []corev1.NodeAddress{hostNameOf("a"),
			externalIP("52.1.1.1"), internalDNS("a.ec2.internal"), internalIP("10.0.0.2"), internalIP("10.0.0.3")}, "10.0.0.2"},
		"is none in IPv6": {"", []corev1.NodeAddress{internalIP("fd00::2"),
			internalIP("10.0.0.2")}, "10.0.0.2"},
		"is none that a host gives itself": {"", []corev1.NodeAddress{internalIP("169.254.7.8"),
			internalIP("127.0.0.1"), internalIP("10.0.0.2")}, "10.0.0.2"},
		"is an internal name when there is no such address": {"", []corev1.NodeAddress{internalIP("fd00::2"),
			internalDNS("a.example.com")}, "a.example.com"},
		"is no name without a domain, as vSphere tells it early": {"", []corev1.NodeAddress{internalDNS("win-abcde"),
			hostNameOf("win-abcde")}, ""},
		"is no IPv6 address under the name of a name": {"", []corev1.NodeAddress{internalDNS("fd00::2"),
			internalDNS("10.0.0.9")}, ""},
		"is never an external one": {"", []corev1.NodeAddress{externalIP("52.1.1.1"),
			externalDNS("a.example.com")}, ""},
		"is nothing that is no address": {"", []corev1.NodeAddress{internalIP("10.0.0.256"),
			internalIP(""), internalDNS("a..b")}, ""},
		"stays while the Machine has it, in any order": {"10.0.0.2", []corev1.NodeAddress{internalIP("10.132.1.2"),
			internalIP("10.0.0.2")}, "10.0.0.2"},
		"follows the Machine when it has it no longer": {"10.0.0.2", []corev1.NodeAddress{internalIP("10.0.0.7")},
			"10.0.0.7"},
		"of numbers is better than a name": {"a.example.com",
			[]corev1.NodeAddress{internalDNS("a.example.com"), internalIP("10.0.0.2")}, "10.0.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newMachineView(newWindowsMachine("a", withAddresses(test.addresses...))).hostAddress(test.present); got != test.want {
				t.Errorf("the address is %q, want %q", got, test.want)
			}
		})
	}
}

func TestDiffInstances_InstanceFollowsMachine(t *testing.T) {
	present := instanceOf("AWS", newWindowsMachine("a"))

	t.Run("an unchanged Machine changes nothing", func(t *testing.T) {
		expectNoChange(t, list(newWindowsMachine("a")), present)
	})
	t.Run("a Machine that came to run changes nothing", func(t *testing.T) {
		expectNoChange(t, list(newWindowsMachine("a", withPhase(machinev1beta1.PhaseRunning))), present)
	})
	t.Run("a new address is followed", func(t *testing.T) {
		if got := expectOneChange(t, list(newWindowsMachine("a", withAddresses(internalIP("10.0.0.9")))),
			present).After.Spec.Address; got != "10.0.0.9" {
			t.Errorf("the address is %q", got)
		}
	})
	t.Run("the address stays while the Machine has none", func(t *testing.T) {
		expectNoChange(t, list(newWindowsMachine("a", withAddresses())), present)
	})
	t.Run("a status that was lost changes nothing", func(t *testing.T) {
		expectNoChange(t, list(newWindowsMachine("a", noPhase, withAddresses())), present)
	})
	t.Run("labels of the Machine's spec are followed", func(t *testing.T) {
		machine := newWindowsMachine("a", func(m *machinev1beta1.Machine) {
			m.Spec.Labels = map[string]string{v1alpha1.LabelWorker: ""}
		})
		change := expectOneChange(t, list(machine), present)
		if _, ok := change.After.Spec.Node.Labels[v1alpha1.LabelWorker]; !ok {
			t.Errorf("the node is to carry %+v", change.After.Spec.Node)
		}
	})
	t.Run("a pause is the user's", func(t *testing.T) {
		paused := *present.DeepCopy()
		paused.Spec.Paused = true
		expectNoChange(t, list(newWindowsMachine("a")), paused)
		if change := expectOneChange(t, list(newWindowsMachine("a", markDeleted)), paused); !change.After.Spec.Paused {
			t.Error("the pause is gone")
		}
	})
	t.Run("what is done to the spec by hand is undone", func(t *testing.T) {
		edited := *present.DeepCopy()
		edited.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		if change := expectOneChange(t, list(newWindowsMachine("a")), edited); change.After.Spec.DesiredState != v1alpha1.DesiredStateNode {
			t.Errorf("the instance is to be %s", change.After.Spec.DesiredState)
		}
	})
	t.Run("an instance that a user deleted is made again", func(t *testing.T) {
		if !expectOneChange(t, list(newWindowsMachine("a"))).IsCreation() {
			t.Error("it is not made")
		}
	})
}

//
func TestDiffInstances_UnmanagedByStateOfMachine(t *testing.T) {
	present := instanceOf("AWS", newWindowsMachine("a"))
	for name, test := range map[string]struct {
		edits  []edit
		reason string
	}{
		"while its Machine has a deletion timestamp": {[]edit{markDeleted}, v1alpha1.ReasonMachineDeleting},
		"while its Machine is in phase Deleting": {[]edit{withPhase(machinev1beta1.PhaseDeleting)},
			v1alpha1.ReasonMachineDeleting},
		"when its Machine has failed": {[]edit{withPhase(machinev1beta1.PhaseFailed)},
			v1alpha1.ReasonMachineFailed},
		"when its Machine is to be ignored": {[]edit{withLabel(v1alpha1.LabelIgnore, "true")},
			v1alpha1.ReasonMachineIgnored},
		"when its Machine has lost the label": {[]edit{removeOSLabel}, v1alpha1.ReasonMachineIgnored},
		"when its Machine is labeled for another system": {[]edit{withLabel(v1alpha1.LabelMachineOSID, "Linux")},
			v1alpha1.ReasonMachineIgnored},
		"as being deleted, also when its Machine is ignored": {[]edit{markDeleted, withLabel(v1alpha1.LabelIgnore, "true")},
			v1alpha1.ReasonMachineDeleting},
		"as being deleted, also when its Machine has failed": {[]edit{markDeleted, withPhase(machinev1beta1.PhaseFailed)},
			v1alpha1.ReasonMachineDeleting},
		"without its Machine's addresses, as they are at the end": {[]edit{markDeleted, withAddresses()},
			v1alpha1.ReasonMachineDeleting},
	} {
		t.Run(name, func(t *testing.T) {
			machine := newWindowsMachine("a", test.edits...)
			after := expectOneChange(t, list(machine), present).After
			if after.Spec.DesiredState != v1alpha1.DesiredStateUnmanaged || after.Spec.DesiredStateReason != test.reason {
				t.Errorf("the instance is to be %s/%s", after.Spec.DesiredState, after.Spec.DesiredStateReason)
			}
			if after.Spec.Address != present.Spec.Address || after.Spec.Username != present.Spec.Username {
				t.Errorf("its spec is %+v", after.Spec)
			}
			expectNoChange(t, list(machine), *after)
		})
	}
	t.Run("and is a node again when its Machine is put right", func(t *testing.T) {
		ignored := expectOneChange(t, list(newWindowsMachine("a", withLabel(v1alpha1.LabelIgnore, "true"))), present).After
		after := expectOneChange(t, list(newWindowsMachine("a")), *ignored).After
		if after.Spec.DesiredState != v1alpha1.DesiredStateNode || after.Spec.DesiredStateReason != "" {
			t.Errorf("the instance is to be %s/%s", after.Spec.DesiredState, after.Spec.DesiredStateReason)
		}
	})
	t.Run("whatever else its Machine asks for meanwhile", func(t *testing.T) {
		ignored := expectOneChange(t, list(newWindowsMachine("a", removeOSLabel)), present).After
		expectNoChange(t, list(newWindowsMachine("a", removeOSLabel, withAddresses(internalIP("10.0.0.9")))), *ignored)
	})
}

func TestDiffInstances_InstanceRemovedWithMachine(t *testing.T) {
	present := instanceOf("AWS", newWindowsMachine("a"))

	t.Run("a Machine that is gone takes its instance along, once", func(t *testing.T) {
		after := expectOneChange(t, nil, present).After
		if after.Spec.DesiredState != v1alpha1.DesiredStateRemoved {
			t.Fatalf("the instance is to be %s", after.Spec.DesiredState)
		}
		expectNoChange(t, nil, *after)
	})
	t.Run("also one that was being deleted", func(t *testing.T) {
		deleting := expectOneChange(t, list(newWindowsMachine("a", markDeleted)), present).After
		after := expectOneChange(t, nil, *deleting).After
		if after.Spec.DesiredState != v1alpha1.DesiredStateRemoved || after.Spec.DesiredStateReason != "" {
			t.Errorf("the instance is to be %s/%s", after.Spec.DesiredState, after.Spec.DesiredStateReason)
		}
	})
	t.Run("another Machine of the same name waits until the instance of the first is gone", func(t *testing.T) {
		second := newWindowsMachine("a", withUID("other"), withAddresses(internalIP("10.0.0.5")))
		after := expectOneChange(t, list(second), present).After
		if after.Spec.DesiredState != v1alpha1.DesiredStateRemoved || after.Spec.Source.Machine.UID != "uid-of-a" {
			t.Fatalf("the instance is to be %s for %s", after.Spec.DesiredState, after.Spec.Source.Machine.UID)
		}
		expectNoChange(t, list(second), *after)
		if created := expectOneChange(t, list(second)).After; created.Spec.Source.Machine.UID != "other" || created.Spec.Address != "10.0.0.5" {
			t.Errorf("the second instance is %+v", created.Spec)
		}
	})
	t.Run("the others stay", func(t *testing.T) {
		change := expectOneChange(t, list(newWindowsMachine("b")), present, instanceOf("AWS", newWindowsMachine("b")))
		if change.After.Name != "a" {
			t.Errorf("%s changes", change.After.Name)
		}
	})
}

func TestDiffInstances_ListedHostNotChanged(t *testing.T) {
	host := v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a",
			Labels: map[string]string{v1alpha1.LabelSource: v1alpha1.SourceConfigMap}},
		Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.1", Username: "core", DesiredState: v1alpha1.DesiredStateNode,
			Source: v1alpha1.Source{ConfigMapKey: "10.0.0.1"}},
	}
	t.Run("a Machine of the same name gets an event that the name is taken", func(t *testing.T) {
		result, conflicts := diffInstances(settings{namespace: namespace, platform: "AWS"}, list(newWindowsMachine("a"), newWindowsMachine("b")),
			[]v1alpha1.WindowsInstance{host})
		if len(result) != 1 || result[0].After.Name != "b" {
			t.Errorf("changes are %+v: the other Machine goes on", result)
		}
		if len(conflicts) != 1 || conflicts[0].Name != "a" {
			t.Errorf("names taken of %v", conflicts)
		}
	})
	t.Run("a Machine of the same name that gets no instance gets no event", func(t *testing.T) {
		expectNoChange(t, list(newWindowsMachine("a", markDeleted)), host)
	})
	t.Run("a host stays without any Machine, also when its label is wrong", func(t *testing.T) {
		mislabeled := *host.DeepCopy()
		mislabeled.Labels[v1alpha1.LabelSource] = v1alpha1.SourceMachine
		expectNoChange(t, nil, host)
		expectNoChange(t, nil, mislabeled)
	})
}

func TestDiffInstances_ThousandMachinesAtOnce(t *testing.T) {
	var machines []*machinev1beta1.Machine
	var present []v1alpha1.WindowsInstance
	for i := range 1000 {
		m := newWindowsMachine(fmt.Sprintf("win-%04d", i), withAddresses(internalIP(fmt.Sprintf("10.0.%d.%d", i/250, i%250+1))))
		machines = append(machines, m)
		if i%2 == 0 {
			present = append(present, instanceOf("AWS", m))
		}
	}
	result, _ := diffInstances(settings{namespace: namespace, platform: "AWS"}, machines, present)
	if len(result) != 500 || result[0].After.Name != "win-0001" || result[499].After.Name != "win-0999" {
		t.Fatalf("%d changes", len(result))
	}
	for _, change := range result {
		present = append(present, *change.After)
	}
	expectNoChange(t, machines, present...)
}

func TestMachineView_UnreadFieldsIgnored(t *testing.T) {
	updates := queue.Changed(newMachineView)
	for name, test := range map[string]struct {
		edit edit
		want bool
	}{
		"a heartbeat": {func(m *machinev1beta1.Machine) {
			m.Status.LastUpdated = &metav1.Time{Time: time.Unix(1, 0)}
		}, false},
		"a node reference": {func(m *machinev1beta1.Machine) {
			m.Status.NodeRef = &corev1.ObjectReference{Name: "a"}
		}, false},
		"an annotation": {func(m *machinev1beta1.Machine) { m.Annotations = map[string]string{"a": "b"} }, false},
		"a phase":       {withPhase(machinev1beta1.PhaseFailed), true},
		"an address":    {withAddresses(internalIP("10.0.0.9")), true},
		"a label":       {withLabel(v1alpha1.LabelIgnore, "true"), true},
		"a deletion":    {markDeleted, true},
		"another UID":   {withUID("other"), true},
		"another MachineSet": {func(m *machinev1beta1.Machine) {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", UID: "set", Controller: ptr.To(true)}}
		}, true},
		"an owner that does not control it": {func(m *machinev1beta1.Machine) {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", UID: "set"}}
		}, false},
		"a label for the Node": {func(m *machinev1beta1.Machine) {
			m.Spec.Labels = map[string]string{"a": "b"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := updates.Update(updateEvent(newWindowsMachine("a"), newWindowsMachine("a", test.edit))); got != test.want {
				t.Errorf("matters: %t, want %t", got, test.want)
			}
		})
	}
}
