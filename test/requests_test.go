package test

import (
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
)

// What a join may cost the API server, as in lab/bench. The writes tell what must not be lost: that the host is listed,
// its host key before anything is sent, its name before and after it is checked, that it restarts, the certificates that
// are requested and approved, whose the Node is, that it takes pods, and four events. Up to five more are written once
// for all hosts that join at about the same time.
const (
	mostReads  = 36
	mostWrites = 21
	// A conflict, as over the Node, which its kubelet writes as well, costs another write and two reads before it.
	conflictReads = 2
	// The fleet is read once for what happens at about the same time, so a join that is not within that time has two looks.
	// One look has one list of MachineSets, and costs so many reads.
	mostLooks = 2
	look      = 8
	// Where a machine is so busy that a step takes long, a host's progress is written at most so often, and there may be
	// another look.
	progress = 5 * time.Second
)

func TestAJoinCostsTheAPIServerFewRequests(t *testing.T) {
	r := installed(t, rig.Options{Hosts: rig.Hosts(1)})
	run(t, r)
	const quiet = 3 * time.Second
	rigtest.Silent(t, r, quiet, nil)
	log, err := audit.OpenAtEnd(r.Cluster().AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	requests := audit.CountRequests(log, audit.ServiceAccount(r.Namespace(), "windows-machine-config-operator"))
	begin := time.Now()
	list(t, r)
	ready(t, r)
	slow := int(time.Since(begin) / progress)
	rigtest.Silent(t, r, quiet, nil)
	if err := requests.Update(); err != nil {
		t.Fatal(err)
	}
	looks := requests.Kinds["list machinesets"]
	if looks < 1 || looks > mostLooks+slow {
		t.Errorf("the fleet was read %d times: %s", looks, requests)
	}
	reads := mostReads + look*(looks-1) + conflictReads*requests.Conflicts
	writes := mostWrites + slow + requests.Conflicts
	t.Logf("a join costs %s, with %d conflicts", requests, requests.Conflicts)
	if requests.Reads > reads || requests.Writes > writes {
		t.Errorf("more than %d reads or %d writes: %s", reads, writes, requests)
	}
}
