package rig

import (
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/lab/machineapi"
)

// PlatformWindows describes a platform's virtual machine with Windows, for clouds whose hosts are not simulated.
type PlatformWindows struct {
	// ComputerName is what the platform calls the new Windows, and Username the administrator of its image.
	ComputerName, Username string
	// CloudName is the name by which the platform's metadata service knows it; "" where nobody asks for that.
	CloudName string
	// Addresses are those that the platform tells of the virtual machine.
	Addresses []corev1.NodeAddress
	// ImageKeys are the keys that the image's SSH server accepts: none where they come with the user data.
	ImageKeys []ssh.PublicKey
	// Script is what the platform's agent finds in the user data and runs, at each boot if EachBoot is set; nil when it
	// runs nothing.
	Script   []byte
	EachBoot bool
}

// PlatformWindows returns the platform's description of the virtual machine at an address, or why the platform refuses
// it for good.
func (r *Rig) PlatformWindows(spec machineapi.VirtualMachine, address string) (PlatformWindows, error) {
	if err := checkVM(spec); err != nil {
		return PlatformWindows{}, machineapi.Permanent(err)
	}
	w := PlatformWindows{
		ComputerName: computerName(spec), Username: machineUser(spec.Platform),
		CloudName: cloudName(spec.Platform, spec.MachineName, address),
		Addresses: (&vm{spec: spec, address: address}).addresses(),
	}
	if imageHoldsKey(spec.Platform) {
		w.ImageKeys = []ssh.PublicKey{r.imageKey()}
	}
	w.Script, w.EachBoot = runnable(spec.Platform, spec.UserData)
	return w, nil
}
