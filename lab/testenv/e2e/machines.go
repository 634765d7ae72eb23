package e2e

import (
	"context"
	"maps"
	"strings"
	"testing"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

const (
	labelOSID        = "machine.openshift.io/os-id"
	labelMachineRole = "machine.openshift.io/cluster-api-machine-role"
)

// machineVersion identifies one state of a Machine.
type machineVersion struct {
	uid             types.UID
	resourceVersion string
}

// ForeignMachines labels one Machine of the control plane as Windows, and creates a Machine of a Linux worker. The
// returned function checks that no Machine other than Windows workers was changed since then. The environment needs at
// least two LinuxNodes.
func ForeignMachines(t *testing.T, r *testenv.Environment) (unchanged func(t *testing.T)) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	masters := foreignMachines(t, r, r.Client)
	if len(masters) < 2 {
		t.Fatalf("the control plane has %d Machines", len(masters))
	}
	for name, machine := range masters {
		if strings.HasSuffix(name, "-master-0") {
			must(r.Client.Patch(t.Context(), &machine,
				client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+labelOSID+`":"Windows"}}}`))))
			worker := &machinev1.Machine{Spec: *machine.Spec.DeepCopy()}
			worker.Namespace, worker.Name = machine.Namespace, strings.Replace(name, "-master-", "-worker-", 1)
			worker.Labels = map[string]string{labelMachineRole: "worker"}
			worker.Spec.ProviderID = nil
			must(r.Client.Create(t.Context(), worker))
		}
	}
	var before map[string]machineVersion
	ctx, cancel := context.WithTimeout(t.Context(), WaitTimeout)
	defer cancel()
	must(r.WaitFor(ctx, "the Machines of Linux to run", &machinev1.Machine{},
		func(_ context.Context, reader client.Reader) (bool, error) {
			foreign := foreignMachines(t, r, reader)
			for _, machine := range foreign {
				if ptr.Deref(machine.Status.Phase, "") != machinev1.PhaseRunning {
					return false, nil
				}
			}
			before = machineVersions(foreign)
			return len(foreign) == len(masters)+1, nil
		}))
	return func(t *testing.T) {
		t.Helper()
		if after := machineVersions(foreignMachines(t, r, r.Client)); !maps.Equal(after, before) {
			t.Errorf("the Machines that are no Windows workers were %v, and are %v", before, after)
		}
	}
}

// foreignMachines returns the Machines that are no Windows workers, by name.
func foreignMachines(t *testing.T, r *testenv.Environment, reader client.Reader) map[string]machinev1.Machine {
	t.Helper()
	windows, err := r.Machines(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var all machinev1.MachineList
	if err := reader.List(t.Context(), &all, client.InNamespace(v1alpha1.MachineNamespace)); err != nil {
		t.Fatal(err)
	}
	foreign := map[string]machinev1.Machine{}
	for _, machine := range all.Items {
		foreign[machine.Name] = machine
	}
	for _, machine := range windows {
		delete(foreign, machine.Name)
	}
	return foreign
}

func machineVersions(machines map[string]machinev1.Machine) map[string]machineVersion {
	found := map[string]machineVersion{}
	for name, machine := range machines {
		found[name] = machineVersion{machine.UID, machine.ResourceVersion}
	}
	return found
}
