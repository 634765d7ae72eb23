package testenv

import (
	"path"
	"slices"
	"time"
)

// VMFault is a fault of the virtual machines of some Machines.
type VMFault struct {
	// Machine is a pattern for the Machine's name, as in path.Match.
	Machine string
	// CreateError is the platform's error when it creates the virtual machine; see fakemachineapi.Permanent. The
	// error lasts until the fault is fixed.
	CreateError error
	// BootDuration is added to the duration of a boot.
	BootDuration time.Duration
	// UserDataDelay is added to the time until the user data has run.
	UserDataDelay time.Duration
	// UserDataHangs prevents the user data from completing until the fault is fixed.
	UserDataHangs bool
	// KeyRefusalDuration is the time during which the SSH server listens but does not accept the key yet.
	KeyRefusalDuration time.Duration
	// RefusesOnceMore makes the server refuse the operator once more after that time, and accept the key right
	// afterwards, so that the operator notices as late as possible.
	RefusesOnceMore bool
}

// activeVMFault is an injected fault.
type activeVMFault struct {
	VMFault
	cleared chan struct{}
}

// InjectVM injects a fault until the returned function is called. The fault affects virtual machines that are created
// or boot again from now on.
func (r *Environment) InjectVM(fault VMFault) (restore func()) {
	active := &activeVMFault{fault, make(chan struct{})}
	c := r.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, active)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if i := slices.Index(c.faults, active); i >= 0 {
			c.faults = slices.Delete(c.faults, i, i+1)
			close(active.cleared)
		}
	}
}

// faultsOf returns the current faults of a Machine's virtual machine. The caller holds the lock.
func (c *cloud) faultsOf(machine string) []*activeVMFault {
	var faults []*activeVMFault
	for _, fault := range c.faults {
		if matches, err := path.Match(fault.Machine, machine); err == nil && matches {
			faults = append(faults, fault)
		}
	}
	return faults
}
