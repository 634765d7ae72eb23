package machineapi

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
)

// Cloud is a platform's API from the Machine API's view: it makes, describes and deletes virtual machines. Every call
// is idempotent by the virtual machine's ID, and may be made again after the controllers were restarted. A call that
// fails is made again later, unless its error is [Permanent].
type Cloud interface {
	// Create asks for a virtual machine and does not wait until it runs. One that is there with this ID is left as it is.
	Create(ctx context.Context, vm VirtualMachine) error
	// Describe tells how the virtual machine with the ID is; false means that there is none, be it that it was never made
	// or is deleted.
	Describe(ctx context.Context, id string) (VirtualMachineStatus, bool, error)
	// Delete removes the virtual machine with all that was on it. One that is not there is no error. The Machine is let go
	// when Describe says that there is none, so Delete need not wait.
	Delete(ctx context.Context, id string) error
}

// Operating systems of virtual machines, as [VirtualMachine] names them.
const (
	Windows = "Windows"
	Linux   = "Linux"
)

// VirtualMachine is a request to a platform.
type VirtualMachine struct {
	// ID names the virtual machine for good: it follows from the Machine's UID.
	ID string
	// MachineName is the Machine's name, which platforms use as the name of the virtual machine.
	MachineName string
	// Platform is the platform's name as Infrastructure has it: None, AWS, Azure, GCP, Nutanix or VSphere.
	Platform string
	// OperatingSystem is Windows for a Machine with the label machine.openshift.io/os-id=Windows, else Linux.
	OperatingSystem string
	// Image is what the virtual machine is started from: the id of an AMI, offer:sku, the name of a template, or the image
	// of a disk.
	Image string
	// Zone is the zone of the providerSpec, "" without one.
	Zone string
	// Subnet is the name that the providerSpec looks for its subnet by on AWS, "" where it does not.
	Subnet string
	// ProviderID is what the virtual machine is known by to the node's cloud controller. Its form is the platform's.
	ProviderID string
	// UserData is the value of the key userData of the Secret that the providerSpec names, as it is stored there; nil when
	// it names none.
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
	// Addresses are those that the platform knows; none at first.
	Addresses []corev1.NodeAddress
	// ProviderID is the virtual machine's; "" means the one that Create was given.
	ProviderID string
}

// Permanent marks an error of a [Cloud] as one that no further attempt can cure, such as a quota, an image that is not
// there or a refused configuration: the Machine becomes Failed, with the error as its message, and is never tried
// again.
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
