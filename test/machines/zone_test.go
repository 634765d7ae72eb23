package machines

import (
	"context"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// Three MachineSets run in a zone each, next to listed hosts.
func TestZones_ThreeMachineSetsBesideListedHosts(t *testing.T) {
	const replicas = 2
	l := start(t, "AWS", testenv.Options{Hosts: testenv.Hosts(2), LinuxNodes: 1})
	l.startOperator()
	l.requireNoError(l.ListHosts(t.Context()))
	zones := map[string]string{"windows-a": "us-east-1a", "windows-b": "us-east-1b", "windows-c": "us-east-1c"}
	var uid types.UID
	//
	ready := t.Run("each set comes with the same user data", func(t *testing.T) {
		l := lab{t, l.Environment}
		l.inTime(l.WaitUserData)
		uid = l.userDataUID()
		for _, sets := range [][]string{{"windows-a"}, {"windows-b", "windows-c"}} {
			for _, set := range sets {
				l.createMachineSet(set, replicas, testenv.MachineSetOptions{Zone: zones[set]})
			}
			for _, set := range sets {
				l.waitUntilReady(set, replicas)
				if now := l.userDataUID(); now != uid {
					t.Errorf("with MachineSet %s the Secret is another one", set)
				}
			}
		}
		l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })
	})
	if !ready {
		return
	}
	//
	t.Run("the nodes of each set are in its zone", func(t *testing.T) {
		lab{t, l.Environment}.checkZones(zones, replicas)
	})
	//
	t.Run("hosts that are given back take no Machine with them", func(t *testing.T) {
		lab{t, l.Environment}.restoreListedHosts()
	})
	//
	t.Run("another key leaves each set a Machine that works, however much may be disturbed at once", func(t *testing.T) {
		l := lab{t, l.Environment}
		before := l.machineIdentities()
		l.setMaxUnavailable(len(zones) * replicas)
		availability, err := l.WatchAvailability(t.Context(), testenv.AvailabilityOptions{})
		l.requireNoError(err)
		defer availability.Stop()
		l.requireNoError(l.RotateKey(t.Context(), false))
		l.inTime(func(ctx context.Context) error {
			return l.WaitForMachines(ctx, "", "to be others", func(machines []machine) bool {
				return len(machines) == len(before) && !slices.ContainsFunc(machines, func(m machine) bool {
					return before[m.Name] != identity{}
				})
			})
		})
		for set := range zones {
			l.waitUntilReady(set, replicas)
		}
		report, err := availability.Report(t.Context())
		l.requireNoError(err)
		for set := range zones {
			if n := report.MaxByPool[set]; n != replicas-1 {
				t.Errorf("of MachineSet %s %d Machines were away at once, want %d", set, n, replicas-1)
			}
		}
		l.checkZones(zones, replicas)
		if l.userDataUID() != uid {
			t.Error("the Secret with the user data is another one")
		}
	})
}

// The cloud's controller sets the labels that determine pod placement, and removes the taint that excludes pods.
func TestZones_NodeWaitsForCloudController(t *testing.T) {
	for platform, c := range map[string]struct{ zone, label string }{
		"AWS": {"us-east-1b", "us-east-1b"}, "Azure": {"2", "eastus-2"},
	} {
		t.Run(platform, func(t *testing.T) {
			works := make(chan struct{})
			l := start(t, platform, testenv.Options{CloudWorks: works, LinuxNodes: 1})
			l.startOperator()
			l.createMachineSet("win", 1, testenv.MachineSetOptions{Zone: c.zone})
			name := l.waitForOnlyMachine("win")
			instance := l.waitForInstance(name, "to wait for the cloud", func(i *v1alpha1.WindowsInstance) bool {
				return i != nil && i.Status.Summary == v1alpha1.ReasonNodeNotInitialized
			})
			if testenv.IsReady(instance) || len(instance.Status.NextAction) == 0 {
				t.Errorf("its status is %+v", instance.Status)
			}
			close(works)
			l.waitUntilReady("win", 1)
			labels := l.nodeOf(name).Labels
			if labels[corev1.LabelTopologyZone] != c.label || labels[corev1.LabelInstanceTypeStable] == "" {
				t.Errorf("labels are %v", labels)
			}
		})
	}
}

func (l lab) userDataUID() types.UID {
	l.Helper()
	secret := &corev1.Secret{}
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: "windows-user-data"},
		secret))
	return secret.UID
}

// checkZones checks that the Machines of each MachineSet, and their virtual machines and nodes, are in the
// MachineSet's zone.
func (l lab) checkZones(zones map[string]string, replicas int) {
	l.Helper()
	for set, zone := range zones {
		for _, name := range l.waitUntilReady(set, replicas) {
			m, err := l.Machine(l.Context(), name)
			l.requireNoError(err)
			for what, got := range map[string]string{
				"Machine": m.Labels["machine.openshift.io/zone"], "virtual machine": l.MachineHost(name).Zone(),
				"node": l.nodeOf(name).Labels[corev1.LabelTopologyZone],
			} {
				if got != zone {
					l.Errorf("the %s of %s is in zone %q, want %q", what, name, got, zone)
				}
			}
		}
	}
}

// identity contains the UIDs and the host that identify a Machine.
type identity struct {
	machine, instance, node types.UID
	host                    *testenv.Host
}

// machineIdentities returns the identities of all Windows Machines, by name.
func (l lab) machineIdentities() map[string]identity {
	l.Helper()
	machines, err := l.Machines(l.Context(), "")
	l.requireNoError(err)
	all := map[string]identity{}
	for _, m := range machines {
		instance, err := l.MachineInstance(l.Context(), m.Name)
		l.requireNoError(err)
		if instance == nil {
			l.Fatalf("Machine %s has no instance", m.Name)
		}
		all[m.Name] = identity{machine: m.UID, instance: instance.UID, node: l.nodeOf(m.Name).UID,
			host: l.MachineHost(m.Name)}
	}
	return all
}

// restoreListedHosts removes one host from windows-instances, then deletes the ConfigMap, and checks that
// no Machine was changed. Then it lists the hosts again.
func (l lab) restoreListedHosts() {
	before, journals, nodes := l.machineIdentities(), map[string]int{}, []string{}
	for name, each := range before {
		journals[name] = len(each.host.Machine().Journal().Entries(nil))
		nodes = append(nodes, l.nodeOf(name).Name)
	}
	trail := l.openTrail()
	unchanged := func(t *testing.T, hosts ...*testenv.Host) {
		l := lab{t, l.Environment}
		for _, h := range hosts {
			l.inTime(func(ctx context.Context) error { return l.WaitGone(ctx, h.Options.Name) })
		}
		if after := l.machineIdentities(); !maps.Equal(before, after) {
			t.Errorf("Machines with all that is theirs were %v, and are %v", before, after)
		}
		for name, each := range before {
			entries := each.host.Machine().Journal().Entries(nil)[journals[name]:]
			if touched := slices.DeleteFunc(entries, e2e.IsHostActivity); len(touched) > 0 {
				t.Errorf("the operator touched the host of Machine %s: %+v", name, touched)
			}
		}
		trail.lab = l
		trail.checkNoWrites(nodes...)
	}
	first, second := l.Hosts()[0], l.Hosts()[1]
	l.Run("one entry is taken out", func(t *testing.T) {
		l := lab{t, l.Environment}
		address, value := second.Entry()
		l.requireNoError(l.SetInstances(t.Context(), map[string]string{address: value}))
		unchanged(t, first)
	})
	l.Run("the ConfigMap is deleted", func(t *testing.T) {
		l.requireNoError(l.DeleteInstances(t.Context()))
		unchanged(t, first, second)
	})
	l.Run("the hosts are listed again", func(t *testing.T) {
		l := lab{t, l.Environment}
		l.requireNoError(l.ListHosts(t.Context()))
		l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx) })
	})
}

// setMaxUnavailable sets the number of nodes that may be disrupted at once.
func (l lab) setMaxUnavailable(nodes int) {
	l.Helper()
	l.changePolicy(func(p *v1alpha1.WindowsDisruptionPolicySpec) {
		p.MaxUnavailable = ptr.To(intstr.FromInt32(int32(nodes)))
	})
}

// changePolicy changes the WindowsDisruptionPolicy that the operator has created.
func (l lab) changePolicy(change func(*v1alpha1.WindowsDisruptionPolicySpec)) {
	l.Helper()
	p := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace(),
		Name: v1alpha1.DisruptionPolicyName}}
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKeyFromObject(p), p))
	before := p.DeepCopy()
	change(&p.Spec)
	l.requireNoError(l.Client.Patch(l.Context(), p, client.MergeFrom(before)))
}
