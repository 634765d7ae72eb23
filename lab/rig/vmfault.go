package rig

import (
	"path"
	"slices"
	"time"
)

// VMFault is a fault of the virtual machines of some Machines.
type VMFault struct {
	// Machine is a pattern for the Machine's name, as path.Match has it.
	Machine string
	// CreateFails is what the platform says instead of making the virtual machine; see machineapi.Permanent. It says so
	// until the fault is mended.
	CreateFails error
	// BootDuration is added to the time that a boot takes.
	BootDuration time.Duration
	// UserDataDelay is added to the time that passes until the user data has run.
	UserDataDelay time.Duration
	// UserDataHangs keeps the user data from running to its end until the fault is mended.
	UserDataHangs bool
	// RefusesKey is how long the SSH server already listens, and does not know the key yet.
	RefusesKey time.Duration
	// RefusesOnceMore has it refuse the operator once more after that, and know the key right then: the operator learns of
	// it as late as it may.
	RefusesOnceMore bool
}

// activeVMFault is a fault that was injected.
type activeVMFault struct {
	VMFault
	mended chan struct{}
}

// InjectVM makes virtual machines go wrong until mend is called: those that are made from now on, and those that boot
// again.
func (r *Rig) InjectVM(fault VMFault) (mend func()) {
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
			close(active.mended)
		}
	}
}

// faultsOf returns the faults of a Machine's virtual machine now. The lock is held.
func (c *cloud) faultsOf(machine string) []*activeVMFault {
	var faults []*activeVMFault
	for _, fault := range c.faults {
		if matches, err := path.Match(fault.Machine, machine); err == nil && matches {
			faults = append(faults, fault)
		}
	}
	return faults
}
