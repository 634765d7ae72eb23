package replacement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	replacementpolicy "github.com/windows-machine-config/wmco/internal/policy/replacement"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// withImage sets the image of a MachineSet's template to an image that the existing Machines do not have.
func (w *world) withImage(set *machinev1beta1.MachineSet, image string) {
	w.t.Helper()
	set.Spec.Template.Spec.ProviderSpec.Value = providerSpec(image)
	w.updateObject(set)
}

func providerSpec(image string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"ami":{"id":%q},"userDataSecret":{"name":%q}}`, image, userdata.SecretName)}
}

// setBuild makes the host of a Machine run a Windows build from an image.
func (w *world) setBuild(machine *machinev1beta1.Machine, image, build string, created time.Time) {
	w.t.Helper()
	machine.Spec.ProviderSpec.Value, machine.CreationTimestamp = providerSpec(image), metav1.NewTime(created)
	w.updateObject(machine)
	w.changeNode(machine.Name, func(n *corev1.Node) {
		n.Status.NodeInfo.KernelVersion, n.Status.NodeInfo.OSImage = build, "Windows Server 2022 Datacenter"
	})
}

// createRotatedMachine creates a Machine with a host that has not accepted the current key within the waiting time.
func (w *world) createRotatedMachine(set *machinev1beta1.MachineSet) *machinev1beta1.Machine {
	w.t.Helper()
	machine := w.createMachine(set, w.previousKey)
	w.reconcile()
	w.clock.SetTime(w.clock.Now().Add(replacementpolicy.InPlaceTimeout))
	return machine
}

// expectKept expects that a Machine is not deleted, and returns the reported reason.
func (w *world) expectKept(check string) string {
	w.t.Helper()
	var events []string
	for range 3 {
		result, recorded := w.reconcile()
		events = append(events, recorded...)
		if result.RequeueAfter != waitingPollInterval {
			w.t.Errorf("it is looked at again after %s", result.RequeueAfter)
		}
	}
	if names := w.deletingNames(); len(names) > 0 || len(w.gate.requests) > 0 {
		w.t.Errorf("deleted are %v, and the gate was asked for %v", names, w.gate.requests)
	}
	if len(events) != 1 || !strings.Contains(events[0], "Normal ReplacementPending ") {
		w.t.Fatalf("for %s, told is %q", check, events)
	}
	return events[0]
}

// A Machine must not be deleted if its successor would be refused, whether for another version or for another key.
//
func TestReconcile_MachineKeptIfSuccessorRefused(t *testing.T) {
	for state, c := range map[string]struct {
		change   func(w *world)
		check    string
		messages []string
	}{
		"whose patch version is too low": {func(w *world) { w.facts.Version, w.Line = "5.0.2", lineSince(3) },
			replacementpolicy.ClusterUnsupported, []string{"OpenShift 5.0.2", "OpenShift 5.0.3"}},
		"of an older minor version": {func(w *world) { w.facts.Version = "4.19.9" }, replacementpolicy.ClusterUnsupported, []string{"4.19.9", "OpenShift 4.20"}},
		"of a newer minor version":  {func(w *world) { w.facts.Version = "5.5.0" }, replacementpolicy.ClusterUnsupported, []string{"5.5.0", "OpenShift 4.20"}},
		"without hybrid networking": {func(w *world) { w.facts.Network.HybridOverlay = false }, replacementpolicy.ClusterUnsupported, []string{"hybridClusterNetwork"}},
		"whose configuration cannot be used": {func(w *world) {
			w.clusterErr = &cluster.Error{Object: "MachineConfigPool worker", Message: "it is not there"}
		},
			replacementpolicy.ClusterUnsupported, []string{"cannot be used"}},
		"that has no Windows Machines": {func(w *world) { w.facts.Platform = "None" }, replacementpolicy.MachineUnsupported, []string{"windows-instances"}},
	} {
		for reason, make := range map[string]func(*world, *machinev1beta1.MachineSet) *machinev1beta1.Machine{
			"another version": (*world).createOutdatedMachine, "another key": (*world).createRotatedMachine,
		} {
			t.Run("with "+reason+" in a cluster "+state, func(t *testing.T) {
				w := newWorld(t)
				w.gate.max = 0
				make(w, w.createMachineSet("one", 1, userdata.SecretName))
				w.gate.max, w.gate.requests = 1, nil
				w.reported = recorder.Once[types.UID]{}
				c.change(w)
				event := w.expectKept(c.check)
				for _, part := range c.messages {
					if !strings.Contains(event, part) {
						t.Errorf("told is %q, without %q", event, part)
					}
				}
				w.facts, w.clusterErr, w.Line = servedCluster(), nil, lineSince(0)
				if w.reconcile(); len(w.deletingNames()) != 1 {
					t.Errorf("deleted are %v in a cluster that is served", w.deletingNames())
				}
			})
		}
	}
	t.Run("before the cluster was read", func(t *testing.T) {
		w := newWorld(t)
		w.createOutdatedMachine(w.createMachineSet("one", 1, userdata.SecretName))
		*w.facts, w.clusterErr = nodespec.Cluster{}, errors.New("it has not been read yet")
		result, recorded := w.reconcile()
		if len(w.deletingNames())+len(recorded) > 0 || result.RequeueAfter != pollInterval {
			t.Errorf("deleted are %v, told is %q, next look after %s", w.deletingNames(), recorded, result.RequeueAfter)
		}
	})
}

func TestReconcile_MachineKeptIfImageRefused(t *testing.T) {
	const refused, accepted = "10.0.20348.169", "10.0.20348.681"
	early, late := metav1.Now().Add(-2*time.Hour).Truncate(time.Second), metav1.Now().Add(-time.Hour).Truncate(time.Second)
	for reason, make := range map[string]func(*world, *machinev1beta1.MachineSet) *machinev1beta1.Machine{
		"another version": (*world).createOutdatedMachine, "another key": (*world).createRotatedMachine,
	} {
		begin := func(t *testing.T, replicas int32) (*world, *machinev1beta1.MachineSet, *machinev1beta1.Machine) {
			t.Helper()
			w := newWorld(t)
			w.gate.max = 0
			set := w.createMachineSet("one", replicas, userdata.SecretName)
			machine := make(w, set)
			w.gate.max, w.gate.requests, w.reported = 1, nil, recorder.Once[types.UID]{}
			w.withImage(set, "ami-1")
			return w, set, machine
		}
		t.Run("with "+reason+", until the MachineSet has another image", func(t *testing.T) {
			w, set, machine := begin(t, 1)
			w.setBuild(machine, "ami-1", refused, early)
			event := w.expectKept(replacementpolicy.ImageUnsupported)
			for _, part := range []string{refused, "KB5012637", "MachineSet one", "image", machine.Name} {
				if !strings.Contains(event, part) {
					t.Errorf("told is %q, without %q", event, part)
				}
			}
			w.withImage(set, "ami-2")
			if w.reconcile(); !slices.Equal(w.deletingNames(), []string{machine.Name}) {
				t.Errorf("with another image, deleted are %v", w.deletingNames())
			}
		})
		t.Run("with "+reason+", though its own Windows was updated, as the host of another one shows", func(t *testing.T) {
			w, set, machine := begin(t, 2)
			w.setBuild(machine, "ami-1", accepted, early)
			fresh := w.createMachine(set, w.currentKey)
			fresh.Spec.ProviderSpec.Value, fresh.CreationTimestamp = providerSpec("ami-1"), metav1.NewTime(late)
			fresh.Status.NodeRef = nil // was refused, and is not a node
			w.updateObject(fresh)
			w.changeInstance(fresh.Name, func(i *v1alpha1.WindowsInstance) {
				i.Status.NodeRef, i.Status.PublicKeyHash, i.Status.SSHKeyRejected = nil, "", false
				i.Status.Host = &v1alpha1.HostStatus{Name: "win", Product: "Windows Server 2022 Datacenter", Build: refused}
			})
			if event := w.expectKept(replacementpolicy.ImageUnsupported); !strings.Contains(event, fresh.Name) || !strings.Contains(event, refused) {
				t.Errorf("told is %q", event)
			}
		})
		t.Run("with "+reason+", but not when a younger one shows that the name leads to another build", func(t *testing.T) {
			w, set, machine := begin(t, 2)
			w.setBuild(machine, "ami-1", refused, early)
			w.setBuild(w.createMachine(set, w.currentKey), "ami-1", accepted, late)
			if w.reconcile(); !slices.Equal(w.deletingNames(), []string{machine.Name}) {
				t.Errorf("deleted are %v", w.deletingNames())
			}
		})
	}
}

func TestImageOf_EqualForSameImageOnly(t *testing.T) {
	same := func(t *testing.T, want bool, a, b string) {
		t.Helper()
		if got := imageOf(&runtime.RawExtension{Raw: []byte(a)}) == imageOf(&runtime.RawExtension{Raw: []byte(b)}); got != want {
			t.Errorf("%s and %s have one image: %t", a, b, got)
		}
	}
	for name, c := range map[string]struct {
		spec, otherwise, another string
	}{
		"on AWS": {`{"ami":{"id":"ami-1"},"instanceType":"m5a.large"}`, `{"instanceType":"m6i.large", "ami":{"id":"ami-1"}}`,
			`{"ami":{"id":"ami-2"},"instanceType":"m5a.large"}`},
		"on AWS, by a filter": {`{"ami":{"filters":[{"name":"name","values":["a"]}]}}`, `{"ami":{"filters":[{"values":["a"],"name":"name"}]},"x":1}`,
			`{"ami":{"filters":[{"name":"name","values":["b"]}]}}`},
		"on Azure": {`{"image":{"sku":"2022-datacenter-core","version":"20348.169.210806"},"vmSize":"a"}`,
			`{"image":{"version":"20348.169.210806","sku":"2022-datacenter-core"},"vmSize":"b"}`, `{"image":{"sku":"2022-datacenter-core","version":"latest"},"vmSize":"a"}`},
		"on GCP": {`{"disks":[{"boot":true,"image":"windows-2022","sizeGb":128}]}`, `{"disks":[{"boot":true,"image":"windows-2022","sizeGb":256}]}`,
			`{"disks":[{"boot":true,"image":"windows-2025","sizeGb":128}]}`},
		"on vSphere": {`{"template":"golden-1","memoryMiB":1}`, `{"template":"golden-1","memoryMiB":2}`, `{"template":"golden-2","memoryMiB":1}`},
		"on Nutanix": {`{"image":{"type":"name","name":"a"},"vcpuSockets":1}`, `{"image":{"name":"a","type":"name"},"vcpuSockets":2}`,
			`{"image":{"type":"name","name":"b"},"vcpuSockets":1}`},
		"where no image is found":   {`{"x":{"a":1,"b":2}}`, `{"x": {"b": 2, "a": 1}}`, `{"x":{"a":1,"b":3}}`},
		"where it is no object":     {`[1]`, `[ 1 ]`, `[2]`},
		"where it is not JSON":      {`{`, `{`, `}`},
		"where disks are not disks": {`{"disks":[1,{"image":null}]}`, `{"disks":[1,{"image":null}] }`, `{"disks":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, true, c.spec, c.otherwise)
			same(t, false, c.spec, c.another)
		})
	}
	if imageOf(nil) != "" {
		t.Error("a Machine without a providerSpec has an image")
	}
}

// lineSince returns a release line for OpenShift 5.0 from a patch version on.
func lineSince(patch uint) support.ReleaseLine {
	return support.ReleaseLine{Operator: 12, Minors: []support.Minor{{OpenShift: "5.0", Kubernetes: "1.36", MinPatch: patch}}}
}
