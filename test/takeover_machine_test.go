package test

import (
	"context"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// newLegacyMachines creates a MachineSet with one Machine per given kind. Each Machine is a node of a legacy operator
// of that kind, with the name that the cloud assigns. No operator may run.
func newLegacyMachines(t *testing.T, r *testenv.Environment, set string, kinds ...testenv.LegacyKind) (machines []string,
	nodes map[string]*corev1.Node) {
	t.Helper()
	requireNoError(t, r.CreateMachineSet(t.Context(), set, int32(len(kinds)), testenv.MachineSetOptions{}))
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	requireNoError(t, r.WaitForMachines(ctx, set, "to be there", func(found []machinev1.Machine) bool {
		machines = nil
		for i := range found {
			machines = append(machines, found[i].Name)
		}
		return len(found) == len(kinds)
	}))
	nodes = map[string]*corev1.Node{}
	for i, machine := range machines {
		h, err := r.WaitMachineHost(ctx, machine)
		requireNoError(t, err)
		requireNoError(t, h.Machine().WaitFor(ctx, (*fake.Machine).IsRunning))
		nodes[machine], err = r.SeedLegacyHost(t.Context(), h, testenv.LegacyOptions{
			Kind: kinds[i], NodeName: testenv.MachineDNSName("AWS", h.Machine().Addresses()[0]),
		})
		requireNoError(t, err)
	}
	requireNoError(t, r.WaitForMachines(ctx, set, "to be Running", func(found []machinev1.Machine) bool {
		for i := range found {
			if phase := found[i].Status.Phase; phase == nil || *phase != machinev1.PhaseRunning {
				return false
			}
		}
		return true
	}))
	return machines, nodes
}

// newLegacyCluster returns a cluster with user data and an installed operator that does not run.
func newLegacyCluster(t *testing.T) *testenv.Environment {
	t.Helper()
	r := ownCluster(t, 0)
	_, err := r.InstallOperator(t.Context(), "")
	requireNoError(t, err)
	requireNoError(t, r.CreateKey(t.Context()))
	o := run(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	requireNoError(t, r.WaitUserData(ctx))
	requireNoError(t, o.Stop())
	requireNoError(t, r.SeedLegacyCluster(t.Context(), ""))
	return r
}

// pauseDisruptions pauses or resumes all disruptions of nodes in service.
func pauseDisruptions(t *testing.T, r *testenv.Environment, paused bool) {
	t.Helper()
	policy := &v1alpha1.WindowsDisruptionPolicy{}
	policy.Namespace, policy.Name = r.Namespace(), "cluster" // the operator creates a missing policy
	_, err := controllerutil.CreateOrPatch(t.Context(), r.Client, policy, func() error {
		policy.Spec.Paused = paused
		return nil
	})
	requireNoError(t, err)
}

// a Machine of version 6 is included.
func TestAdoption_LegacyMachinesReplaced(t *testing.T) {
	r := newLegacyCluster(t)
	machines, nodes := newLegacyMachines(t, r, machineSet, testenv.LegacyContainerd, testenv.LegacyBootstrapper)
	availability, err := r.WatchAvailability(t.Context(), testenv.AvailabilityOptions{})
	requireNoError(t, err)
	t.Cleanup(availability.Stop)
	pauseDisruptions(t, r, true)
	hosts := map[string]*testenv.Host{}
	connections := map[string]int{}
	for _, machine := range machines {
		hosts[machine] = r.MachineHost(machine)
		connections[machine] = hosts[machine].Machine().Journal().Count(fake.KindConnection) + hosts[machine].Machine().Journal().Count(winhost.KindLogin)
	}
	run(t, r)
	for _, machine := range machines {
		t.Run("the instance of "+machine+" has the Node as it is, while its turn does not come", func(t *testing.T) {
			was := nodes[machine]
			ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
			defer cancel()
			requireNoError(t, r.WaitForMachineInstance(ctx, machine, "to await its replacement", func(i *v1alpha1.WindowsInstance) bool {
				return i != nil && i.Status.Summary == v1alpha1.ReasonReplacementPending
			}))
			instance, err := r.MachineInstance(t.Context(), machine)
			requireNoError(t, err)
			if ref := instance.Status.NodeRef; ref == nil || ref.Name != was.Name || ref.UID != string(was.UID) || !ref.Confirmed {
				t.Errorf("it has Node %+v", ref)
			}
			if instance.Status.Version != was.Annotations[v1alpha1.AnnotationVersion] || !meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha1.ConditionReady) {
				t.Errorf("version %s, conditions %v", instance.Status.Version, instance.Status.Conditions)
			}
			if now := getNode(t, r, was.Name); now.Annotations[v1alpha1.AnnotationInstance] != machine || now.Spec.Unschedulable {
				t.Errorf("the Node has %v", now.Annotations)
			}
			if !waitForEvent(t, r, "NodeAdopted", was.Name) {
				t.Error("nobody was told")
			}
		})
	}

	pauseDisruptions(t, r, false)
	ctx, cancel := context.WithTimeout(t.Context(), 3*waitTimeout)
	defer cancel()
	for _, machine := range machines {
		requireNoError(t, r.WaitMachineGone(ctx, machine, nodes[machine].Name))
	}
	replaced, err := r.WaitMachinesReady(ctx, machineSet, 2)
	requireNoError(t, err)
	report, err := availability.Report(t.Context())
	requireNoError(t, err)

	t.Run("one at a time, and with the gate's leave", func(t *testing.T) {
		if report.MaxUnavailable > 1 || report.MaxDisruptions > 1 || len(report.Ungated) > 0 {
			t.Errorf("%+v", report)
		}
	})
	t.Run("nobody has connected to the hosts that went", func(t *testing.T) {
		for machine, h := range hosts {
			journal := h.Machine().Journal()
			if n := journal.Count(fake.KindConnection) + journal.Count(winhost.KindLogin); n != connections[machine] {
				t.Errorf("%s: %d connections%s", machine, n-connections[machine], formatJournal(journal))
			}
		}
	})
	t.Run("the new ones have this version", func(t *testing.T) {
		for _, machine := range replaced {
			instance, err := r.MachineInstance(t.Context(), machine)
			requireNoError(t, err)
			if instance.Status.Version != "1.0.0-lab" {
				t.Errorf("%s has version %s", machine, instance.Status.Version)
			}
		}
	})
	t.Run("what the older operator had in the cluster is gone", func(t *testing.T) { waitForLegacyCleanup(t, r, testenv.LegacyContainerd.Version()) })
}

// The node keeps the name assigned by the Machine API, which is not the host name.
// D-1
func TestAdoption_LegacyMachineKeptIfRequested(t *testing.T) {
	r := newLegacyCluster(t)
	machines, nodes := newLegacyMachines(t, r, machineSet, testenv.LegacyContainerd)
	set := &machinev1.MachineSet{}
	requireNoError(t, r.Client.Get(t.Context(), keyOf(v1alpha1.MachineNamespace, machineSet), set))
	setAnnotation(t, r, set, v1alpha1.AnnotationUpgradeStrategy, string(v1alpha1.UpgradeInPlace))
	run(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), 2*waitTimeout)
	defer cancel()
	requireNoError(t, r.WaitForMachineInstance(ctx, machines[0], "to be up to date", func(i *v1alpha1.WindowsInstance) bool {
		return i != nil && i.Status.SpecDigest != "" && meta.IsStatusConditionTrue(i.Status.Conditions,
			v1alpha1.ConditionUpToDate)
	}))
	now, was := getNode(t, r, nodes[machines[0]].Name), nodes[machines[0]]
	if now.UID != was.UID || now.Annotations[v1alpha1.AnnotationInstance] != machines[0] ||
		now.Annotations[v1alpha1.AnnotationVersion] != "1.0.0-lab" || !isNodeReady(now) {
		t.Errorf("the Node has %v", now.Annotations)
	}
	if machine := r.MachineHost(machines[0]); machine == nil {
		t.Error("its virtual machine is gone")
	}
	waitForLegacyCleanup(t, r, testenv.LegacyContainerd.Version())
}
