package testenv

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
	"github.com/windows-machine-config/wmco/lab/fakeopenshift"
)

// VMOptions configure the virtual machines of the lab's cloud. With the zero value only a reboot takes time,
// DefaultRebootDuration.
type VMOptions struct {
	// BootDuration is the time until a new virtual machine runs.
	BootDuration time.Duration
	// UserDataDelay is the time from the end of a boot until the user data has run and the SSH server is installed.
	UserDataDelay time.Duration
	// RebootDuration and SSHDelay are the durations of a reboot, and of the SSH server's start after a reboot.
	RebootDuration, SSHDelay time.Duration
	// FeatureDuration is the time for switching an optional feature of Windows.
	FeatureDuration time.Duration
	// Domain is the primary DNS suffix in the image.
	Domain string
}

// cloud is the platform's API. Windows virtual machines are simulated hosts; Linux nodes are mere Node objects.
type cloud struct {
	env     *Environment
	clients kubernetes.Interface // for Linux nodes

	mu            sync.Mutex
	vms           map[string]*vm // by ID
	faults        []*activeVMFault
	last          int          // number of the most recently assigned address
	usedAddresses map[int]bool // numbers of the addresses in use
	linux         int          // number of Linux machines created so far
	ever          []*Host      // all Windows hosts created so far
}

var _ fakemachineapi.Cloud = (*cloud)(nil)

func newCloud(r *Environment) *cloud {
	return &cloud{env: r, vms: map[string]*vm{}, usedAddresses: map[int]bool{}}
}

// Create implements fakemachineapi.Cloud.
func (c *cloud) Create(_ context.Context, spec fakemachineapi.VirtualMachine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vms[spec.ID] != nil {
		return nil
	}
	faults := c.faultsOf(spec.MachineName)
	for _, fault := range faults {
		if fault.CreateError != nil {
			return fault.CreateError
		}
	}
	if err := checkVM(spec); err != nil {
		return fakemachineapi.Permanent(err)
	}
	v := &vm{cloud: c, spec: spec, done: make(chan struct{})}
	if spec.OperatingSystem == fakemachineapi.Windows {
		if err := c.assignAddress(v); err != nil {
			return err
		}
	} else {
		c.linux++
		v.address = linuxAddress(c.linux)
	}
	c.vms[spec.ID] = v
	var ctx context.Context
	ctx, v.stop = context.WithCancel(c.env.running)
	c.env.group.Go(func() {
		defer close(v.done)
		v.run(ctx, faults)
	})
	return nil
}

// checkVM refuses specs that the platform refuses.
func checkVM(spec fakemachineapi.VirtualMachine) error {
	const longest = 15 // characters of a NetBIOS name
	if spec.Platform == platformAzure && spec.OperatingSystem == fakemachineapi.Windows && len(spec.MachineName) > longest {
		return fmt.Errorf("InvalidParameter: Windows computer name %q cannot be more than %d characters long",
			spec.MachineName, longest)
	}
	return checkSubnet(spec)
}

// assignAddress assigns the least recently used free address. The caller holds the lock.
func (c *cloud) assignAddress(v *vm) error {
	for i := range MachineAddresses {
		n := (c.last+i)%MachineAddresses + 1
		if !c.usedAddresses[n] {
			c.last, c.usedAddresses[n] = n, true
			v.number, v.address = n, MachineAddress(n)
			return nil
		}
	}
	return fmt.Errorf("all %d addresses for Windows virtual machines are in use: delete Machines", MachineAddresses)
}

// Describe implements fakemachineapi.Cloud.
func (c *cloud) Describe(_ context.Context, id string) (fakemachineapi.VirtualMachineStatus, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.vms[id]
	if v == nil {
		return fakemachineapi.VirtualMachineStatus{}, false, nil
	}
	status := fakemachineapi.VirtualMachineStatus{State: fakemachineapi.Pending, ProviderID: v.spec.ProviderID}
	if v.err != nil {
		return status, true, v.err
	}
	if v.deleted {
		status.State = fakemachineapi.Stopped
	} else if v.running {
		status.State = fakemachineapi.Running
	}
	if v.running {
		status.Addresses = v.platformAddresses()
	}
	return status, true, nil
}

// providerID returns the provider ID that the platform reports to a machine: the ID of the virtual machine at the
// address, or the ID of a host without a Machine.
func (r *Environment) providerID(name, address string) string {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	for _, v := range r.cloud.vms {
		if v.address == address && !v.deleted {
			return v.spec.ProviderID
		}
	}
	return fakeopenshift.ProviderID(r.platform, name)
}

// zoneAt returns the zone of the virtual machine at an address; "" if there is none.
func (r *Environment) zoneAt(address string) string {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	for _, v := range r.cloud.vms {
		if v.address == address && !v.deleted {
			return v.spec.Zone
		}
	}
	return ""
}

// Delete implements fakemachineapi.Cloud.
func (c *cloud) Delete(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.vms[id]
	if v == nil || v.deleted {
		return nil
	}
	v.deleted = true
	v.stop()
	c.env.group.Go(func() {
		<-v.done
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.vms, id)
		delete(c.usedAddresses, v.number)
	})
	return nil
}

// platformAddresses returns the addresses that the platform reports.
func (v *vm) platformAddresses() []corev1.NodeAddress {
	addresses := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: v.address}}
	name := v.spec.MachineName
	if dns := internalDNS(v.spec.Platform, v.spec.MachineName, v.address); dns != "" {
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: dns})
		if v.spec.Platform == platformAWS {
			name = dns
		}
	}
	return append(addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name})
}
