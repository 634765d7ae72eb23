package fakemachineapi

import (
	"context"
	"path"
	"sync"
)

// Call is a method of a [Cloud].
type Call string

// The methods of a Cloud.
const (
	Create   Call = "Create"
	Describe Call = "Describe"
	Delete   Call = "Delete"
)

// Faults is a [Cloud] that fails on request, and otherwise calls the underlying Cloud.
type Faults struct {
	cloud Cloud

	mu    sync.Mutex
	rules []fault
	// names maps IDs of virtual machines to Machine names, for each call of Create.
	names map[string]string
}

type fault struct {
	call    Call
	machine string
	err     error
}

// NewFaults returns a Cloud without faults.
func NewFaults(cloud Cloud) *Faults { return &Faults{cloud: cloud, names: map[string]string{}} }

// Fail makes a call fail for the Machines with names that match the pattern (see [path.Match]), until Heal.
// [Permanent] errors of Create make Machines Failed. The name of a Machine is only known after Create was
// called for it.
func (f *Faults) Fail(call Call, machine string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, fault{call, machine, err})
}

// Heal removes all faults.
func (f *Faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

func (f *Faults) checkFault(call Call, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range f.rules {
		if matched, err := path.Match(rule.machine, f.names[id]); rule.call == call && (matched || err != nil) {
			return rule.err
		}
	}
	return nil
}

// Create implements [Cloud].
func (f *Faults) Create(ctx context.Context, vm VirtualMachine) error {
	f.mu.Lock()
	f.names[vm.ID] = vm.MachineName
	f.mu.Unlock()
	if err := f.checkFault(Create, vm.ID); err != nil {
		return err
	}
	return f.cloud.Create(ctx, vm)
}

// Describe implements [Cloud].
func (f *Faults) Describe(ctx context.Context, id string) (VirtualMachineStatus, bool, error) {
	if err := f.checkFault(Describe, id); err != nil {
		return VirtualMachineStatus{}, false, err
	}
	return f.cloud.Describe(ctx, id)
}

// Delete implements [Cloud].
func (f *Faults) Delete(ctx context.Context, id string) error {
	if err := f.checkFault(Delete, id); err != nil {
		return err
	}
	return f.cloud.Delete(ctx, id)
}
