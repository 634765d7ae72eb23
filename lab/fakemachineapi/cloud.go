package fakemachineapi

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
)

// Cloud is a platform's API as the Machine API uses it: it creates, describes and deletes virtual machines.
// Every call is idempotent by the ID of the virtual machine, and may be repeated after a restart of the
// controllers. A failed call is retried later, unless the error is [Permanent].
type Cloud interface {
	// Create requests a virtual machine and does not wait until it runs. An existing virtual machine with this
	// ID is not changed.
	Create(ctx context.Context, vm VirtualMachine) error
	// Describe returns the state of the virtual machine with the ID; false if it was never created or is
	// deleted.
	Describe(ctx context.Context, id string) (VirtualMachineStatus, bool, error)
	// Delete removes the virtual machine with all its data. A missing virtual machine is no error. Delete need
	// not wait: the Machine is released when Describe returns false.
	Delete(ctx context.Context, id string) error
}

// Operating systems of a [VirtualMachine].
const (
	Windows = "Windows"
	Linux   = "Linux"
)

// VirtualMachine is a request to a platform.
type VirtualMachine struct {
	// ID is the permanent ID of the virtual machine, derived from the Machine's UID.
	ID string
	// MachineName is the name of the Machine, which platforms use as the name of the virtual machine.
	MachineName string
	// Platform is the platform type in the Infrastructure: None, AWS, Azure, GCP, Nutanix or VSphere.
	Platform string
	// OperatingSystem is Windows for a Machine with the label machine.openshift.io/os-id=Windows, otherwise
	// Linux.
	OperatingSystem string
	// Image is the image of the virtual machine: the id of an AMI, offer:sku, the name of a template, or the
	// image of a disk.
	Image string
	// Zone is the zone of the providerSpec, "" without one.
	Zone string
	// Subnet is the name by which the providerSpec selects the subnet on AWS, "" if it does not.
	Subnet string
	// ProviderID is the ID of the virtual machine for the node's cloud controller, in the format of the
	// platform.
	ProviderID string
	// UserData is the unmodified value of the key userData of the Secret in the providerSpec; nil without a
	// Secret.
	UserData []byte
}

// States of a virtual machine.
const (
	Pending = "Pending"
	Running = "Running"
	Stopped = "Stopped"
)

// VirtualMachineStatus is the state of a virtual machine.
type VirtualMachineStatus struct {
	// State is Pending, Running or Stopped.
	State string
	// Addresses are the addresses that the platform knows; none at first.
	Addresses []corev1.NodeAddress
	// ProviderID is the provider ID of the virtual machine; "" means the ID passed to Create.
	ProviderID string
}

// Permanent marks an error of a [Cloud] as permanent, such as a quota, a missing image or a refused
// configuration. The Machine becomes Failed, with the error as its message, and is never retried.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

func isPermanent(err error) bool {
	var permanent *permanentError
	return errors.As(err, &permanent)
}
