package machines

import (
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

func TestMachines_ConfiguredConcurrentlyDespiteBrokenHost(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	restore := l.InjectVM(testenv.VMFault{Machine: "broken-*", UserDataHangs: true})
	defer restore()
	l.startOperator()
	l.createMachineSet("broken", 1, testenv.MachineSetOptions{})
	broken := l.waitForOnlyMachine("broken")
	for _, zone := range []string{"a", "b", "c"} {
		l.createMachineSet("windows-"+zone, 3, testenv.MachineSetOptions{})
	}
	for _, zone := range []string{"a", "b", "c"} {
		l.waitUntilReady("windows-"+zone, 3)
	}
	instance, err := l.MachineInstance(t.Context(), broken)
	l.requireNoError(err)
	if testenv.IsReady(instance) {
		t.Fatal("the broken one is Ready: this test shows nothing")
	}
	restore()
	l.waitUntilReady("broken", 1)
}

//
func TestMachines_OperatorRestartLeavesHostsUnchanged(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	first := l.startOperator()
	l.createMachineSet("windows", 2, testenv.MachineSetOptions{})
	names := l.waitUntilReady("windows", 2)
	l.requireNoError(first.Stop())
	before := map[string]int{}
	for _, name := range names {
		before[name] = len(l.MachineHost(name).Machine().Journal().Entries(nil))
	}
	l.startOperator()
	// Another Machine shows that the restarted operator has reconciled all Machines.
	l.createMachineSet("another", 1, testenv.MachineSetOptions{})
	l.waitUntilReady("another", 1)
	for _, name := range names {
		entries := l.MachineHost(name).Machine().Journal().Entries(nil)[before[name]:]
		if touched := slices.DeleteFunc(entries, e2e.IsHostActivity); len(touched) > 0 {
			t.Errorf("the operator touched host %s: %+v", name, touched)
		}
	}
}
