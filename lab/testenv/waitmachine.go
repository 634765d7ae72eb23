package testenv

import (
	"context"
	"fmt"
	"slices"
	"strings"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// MachineHost returns the host of a Machine; nil if the virtual machine does not run, or no longer exists.
func (r *Environment) MachineHost(machine string) *Host {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	for _, v := range r.cloud.vms {
		if v.spec.MachineName == machine && v.host != nil && !v.deleted {
			return v.host
		}
	}
	return nil
}

// MachineHosts returns all hosts created for Machines so far, oldest first. The journals of deleted hosts can still
// be read.
func (r *Environment) MachineHosts() []*Host {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	return slices.Clone(r.cloud.ever)
}

// DropDeletedHosts drops the hosts of deleted Machines, for labs that create more hosts than memory can hold.
func (r *Environment) DropDeletedHosts() {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	r.cloud.ever = slices.DeleteFunc(r.cloud.ever, r.isGoneLocked)
}

// IsGone reports whether the Machine of a host no longer exists, and the host with it.
func (r *Environment) IsGone(h *Host) bool {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	return r.isGoneLocked(h)
}

// isGoneLocked requires the lock of the cloud.
func (r *Environment) isGoneLocked(h *Host) bool { return r.cloud.vms[h.vm.spec.ID] != h.vm }

// MachineName returns the name of the host's Machine; "" for a BYOH host.
func (h *Host) MachineName() string {
	if h.vm == nil {
		return ""
	}
	return h.vm.spec.MachineName
}

// DestroyMachineHost deletes the virtual machine of a Machine in the cloud, without the Machine API.
func (r *Environment) DestroyMachineHost(ctx context.Context, machine string) error {
	h := r.MachineHost(machine)
	if h == nil {
		return fmt.Errorf("destroy the virtual machine of %s: it has none that runs", machine)
	}
	return r.cloud.Delete(ctx, h.vm.spec.ID)
}

// MachineInstance returns the current instance of a Machine from the API server; nil if there is none.
func (r *Environment) MachineInstance(ctx context.Context, machine string) (*v1alpha1.WindowsInstance, error) {
	return machineInstance(ctx, r.Client, r.Namespace(), machine)
}

func machineInstance(ctx context.Context, reader client.Reader, namespace, machine string) (*v1alpha1.WindowsInstance,
	error) {
	instance := &v1alpha1.WindowsInstance{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: machine}, instance)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the instance of Machine %s: %w", machine, err)
	}
	return instance, nil
}

// WaitForMachineInstance waits until the instance of a Machine meets the condition. The instance is nil while there
// is none.
func (r *Environment) WaitForMachineInstance(ctx context.Context, machine, what string,
	condition func(*v1alpha1.WindowsInstance) bool) error {
	return r.WaitFor(ctx, machine+" "+what, &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			instance, err := machineInstance(ctx, reader, r.Namespace(), machine)
			return err == nil && condition(instance), err
		})
}

// WaitForMachines waits until the Machines of a MachineSet meet the condition.
func (r *Environment) WaitForMachines(ctx context.Context, machineSet, what string,
	condition func([]machinev1.Machine) bool) error {
	return r.WaitFor(ctx, "the Machines of "+machineSet+" "+what, &machinev1.Machine{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			machines, err := machinesOf(ctx, reader, machineSet)
			return err == nil && condition(machines), err
		})
}

// WaitUserData waits until the operator has created the user data that Machines reference.
func (r *Environment) WaitUserData(ctx context.Context) error {
	key := client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: userdata.SecretName}
	return r.WaitFor(ctx, "Secret "+key.String(), &corev1.Secret{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			err := reader.Get(ctx, key, &corev1.Secret{})
			return err == nil, client.IgnoreNotFound(err)
		})
}

// WaitMachineHost waits until the virtual machine of a Machine runs.
func (r *Environment) WaitMachineHost(ctx context.Context, machine string) (h *Host, err error) {
	err = r.WaitFor(ctx, "the virtual machine of "+machine, &machinev1.Machine{},
		func(context.Context, client.Reader) (bool, error) {
			h = r.MachineHost(machine)
			return h != nil, nil
		})
	return h, err
}

// WaitMachinesReady waits until a MachineSet has the given number of Machines, and all are Running with Ready
// instances and available nodes. It returns the names of the Machines.
func (r *Environment) WaitMachinesReady(ctx context.Context, machineSet string, replicas int) (names []string, err error) {
	err = r.WaitForMachines(ctx, machineSet, fmt.Sprintf("to be %d and Running", replicas),
		func(machines []machinev1.Machine) bool {
			names = nil
			for i := range machines {
				if machines[i].DeletionTimestamp != nil || ptr.Deref(machines[i].Status.Phase, "") != machinev1.PhaseRunning {
					return false
				}
				names = append(names, machines[i].Name)
			}
			return len(machines) == replicas
		})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := r.WaitForMachineInstance(ctx, name, "to be Ready", IsReady); err != nil {
			return nil, err
		}
	}
	return names, r.WaitFor(ctx, fmt.Sprintf("MachineSet %s to have %d available", machineSet, replicas),
		&machinev1.MachineSet{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			set := &machinev1.MachineSet{}
			if err := reader.Get(ctx, client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: machineSet},
				set); err != nil {
				return false, err
			}
			return int(set.Status.AvailableReplicas) == replicas, nil
		})
}

// WaitMachineGone waits until a Machine has been removed completely: the Machine, the virtual machine, the instance,
// and the Node, "" for none.
func (r *Environment) WaitMachineGone(ctx context.Context, machine, node string) error {
	for _, wait := range []struct {
		what string
		kind client.Object
		key  client.ObjectKey
	}{
		{"Machine", &machinev1.Machine{}, client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: machine}},
		{"instance of Machine", &v1alpha1.WindowsInstance{}, client.ObjectKey{Namespace: r.Namespace(), Name: machine}},
		{"Node", &corev1.Node{}, client.ObjectKey{Name: node}},
	} {
		if wait.key.Name == "" {
			continue
		}
		err := r.WaitFor(ctx, wait.what+" "+wait.key.Name+" to be gone", wait.kind,
			func(ctx context.Context, reader client.Reader) (bool, error) {
				object, _ := wait.kind.DeepCopyObject().(client.Object) // a copy has the same type
				err := reader.Get(ctx, wait.key, object)
				return err != nil, client.IgnoreNotFound(err)
			})
		if err != nil {
			return err
		}
	}
	if r.MachineHost(machine) != nil {
		return fmt.Errorf("machine %s is gone, and its virtual machine is not", machine)
	}
	return nil
}

// describeMachines returns the progress of each Windows Machine, for the error of a wait.
func (r *Environment) describeMachines(ctx context.Context) string {
	if !r.options.MachineAPI {
		return ""
	}
	machines, err := r.Machines(ctx, "")
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, machine := range machines {
		fmt.Fprintf(&b, "Machine %s: %s %s", machine.Name, ptr.Deref(machine.Status.Phase, "without phase"),
			ptr.Deref(machine.Status.ErrorMessage, ""))
		if machine.DeletionTimestamp != nil {
			b.WriteString(" (is being deleted)")
		}
		if ref := machine.Status.NodeRef; ref != nil {
			fmt.Fprintf(&b, " node %s", ref.Name)
		}
		b.WriteString("\n")
		for _, c := range machine.Status.Conditions {
			if c.Status != corev1.ConditionTrue {
				fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	return b.String()
}
