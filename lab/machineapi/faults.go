package machineapi

import (
	"context"
	"path"
	"sync"
)

// Call is a call of a [Cloud].
type Call string

// The calls of a Cloud.
const (
	Create   Call = "Create"
	Describe Call = "Describe"
	Delete   Call = "Delete"
)

// Faults is a [Cloud] that fails on request, and otherwise does what the one below it does.
type Faults struct {
	cloud Cloud

	mu    sync.Mutex
	rules []fault
	// names are the Machines' names by the IDs of their virtual machines: those that Create was called for.
	names map[string]string
}

type fault struct {
	call    Call
	machine string
	err     error
}

// NewFaults returns a Cloud that fails at nothing yet.
func NewFaults(cloud Cloud) *Faults { return &Faults{cloud: cloud, names: map[string]string{}} }

// Fail makes a call fail for the Machines whose name fits the pattern (see [path.Match]), until Heal. [Permanent]
// errors of Create make Machines Failed; Describe distinguishes Machines only after Create was called for it.
func (f *Faults) Fail(call Call, machine string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, fault{call, machine, err})
}

// Heal ends all failures.
func (f *Faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

func (f *Faults) check(call Call, id string) error {
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
	if err := f.check(Create, vm.ID); err != nil {
		return err
	}
	return f.cloud.Create(ctx, vm)
}

// Describe implements [Cloud].
func (f *Faults) Describe(ctx context.Context, id string) (VirtualMachineStatus, bool, error) {
	if err := f.check(Describe, id); err != nil {
		return VirtualMachineStatus{}, false, err
	}
	return f.cloud.Describe(ctx, id)
}

// Delete implements [Cloud].
func (f *Faults) Delete(ctx context.Context, id string) error {
	if err := f.check(Delete, id); err != nil {
		return err
	}
	return f.cloud.Delete(ctx, id)
}
