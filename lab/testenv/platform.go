package testenv

import (
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
)

// PlatformWindows describes a platform's virtual machine with Windows, for clouds with hosts that are not simulated.
type PlatformWindows struct {
	// ComputerName is the platform's computer name for the new Windows, and Username the administrator of its image.
	ComputerName, Username string
	// CloudName is the name of the machine in the platform's metadata service; "" if the operator does not use the
	// name.
	CloudName string
	// Addresses are the addresses that the platform reports for the virtual machine.
	Addresses []corev1.NodeAddress
	// ImageKeys are the keys that the image's SSH server accepts: none if the user data installs the keys.
	ImageKeys []ssh.PublicKey
	// Script is the script in the user data that the platform's agent runs, at each boot if EachBoot is set; nil if
	// there is none.
	Script   []byte
	EachBoot bool
}

// PlatformWindows returns the platform's description of the virtual machine at an address, or the platform's
// permanent refusal.
func (r *Environment) PlatformWindows(spec fakemachineapi.VirtualMachine, address string) (PlatformWindows, error) {
	if err := checkVM(spec); err != nil {
		return PlatformWindows{}, fakemachineapi.Permanent(err)
	}
	w := PlatformWindows{
		ComputerName: computerName(spec), Username: machineUser(spec.Platform),
		CloudName: cloudName(spec.Platform, spec.MachineName, address),
		Addresses: (&vm{spec: spec, address: address}).platformAddresses(),
	}
	if hasKeyInImage(spec.Platform) {
		w.ImageKeys = []ssh.PublicKey{r.imageKey()}
	}
	w.Script, w.EachBoot = runnableScript(spec.Platform, spec.UserData)
	return w, nil
}
