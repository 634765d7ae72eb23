package test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// killTimeout is the maximum time until all hosts are through their kills.
const killTimeout = 10 * time.Minute

// minBoundaries contains the minimum numbers of boundaries. With fewer boundaries, the test no longer detects them.
type minBoundaries struct{ configuration, removal int }

// The operator is killed at every boundary between two steps of a first configuration and of a removal, and then
// replaced.
func TestKill_OperatorReplacedDuringConfigurationAndRemoval(t *testing.T) {
	testKillAtAnyStep(t, parallelCluster(t), newReaper(t), 10, minBoundaries{configuration: 130, removal: 40})
}

// The agent is killed before each of its changes during a first configuration and a removal, and the operator runs
// it again.
func TestKill_AgentRunAgainAtAnyStep(t *testing.T) {
	controlPlane := parallelCluster(t)
	k := newReaper(t)
	k.agentsOnly = true
	testKillAtAnyStep(t, controlPlane, k, 14, minBoundaries{configuration: 90, removal: 25})
}

// testKillAtAnyStep configures and restores hosts under kills. Each host becomes Ready, no step that must run once is
// repeated, and in the end each host is restored to its original state.
func testKillAtAnyStep(t *testing.T, controlPlane *cluster.Cluster, k *reaper, hosts int, atLeast minBoundaries) {
	r := newInstalledRig(t, testenv.Options{Cluster: controlPlane, Hosts: testenv.Hosts(1 + hosts), Clock: fastClock(t, k.hasWaiting)})
	t.Cleanup(k.releaseHosts)
	for _, h := range r.Hosts() {
		k.attachHost(r, h)
	}
	k.allowAllDisruptions() // otherwise hosts are restored one after the other
	reference, group := r.Hosts()[0], r.Hosts()[1:]
	c := &killCycle{reaper: k}
	c.configuration = k.recordBoundaries(func() {
		list(t, r, reference.Options.Name)
		waitUntilReady(t, r, reference.Options.Name)
	})
	c.undisruptedSteps = countOnceSteps(reference)
	c.removal = k.recordBoundaries(func() {
		if err := r.DeleteInstances(t.Context()); err != nil {
			t.Fatal(err)
		}
		waitUntilDeleted(t, r, reference.Options.Name)
	})
	seen := observeIdentities(t, r)

	k.start()
	c.run(group)
	for range maxSpares {
		if len(c.configuration.unusedBoundaries())+len(c.removal.unusedBoundaries()) == 0 {
			break
		}
		// Every host was past a boundary when an operator was killed elsewhere: add another host.
		h, err := r.AddHost(t.Context(), testenv.HostOptions{})
		if err != nil {
			t.Fatal(err)
		}
		k.attachHost(r, h)
		c.run([]*testenv.Host{h})
	}
	k.checkVisited("configuration", c.configuration, atLeast.configuration)
	k.checkVisited("removal", c.removal, atLeast.removal)
	seen.checkUnique(t, 4*hosts)
}

// maxSpares is the maximum number of additional hosts if boundaries are left after the first hosts.
const maxSpares = 4

// killCycle configures and restores hosts under kills.
type killCycle struct {
	*reaper
	configuration, removal boundaries
	undisruptedSteps       map[string]int // see once
}

// run configures hosts and restores them.
func (c *killCycle) run(hosts []*testenv.Host) {
	c.Helper()
	before := map[string]fake.Snapshot{}
	var names []string
	for i, h := range hosts {
		if i%3 == 0 {
			ownFiles(c.T, h)
		}
		names = append(names, h.Options.Name)
		before[h.Options.Name] = h.Machine().Snapshot()
	}

	list(c.T, c.env, names...)
	c.runUntil(c.configuration, func(ctx context.Context) error { return c.env.WaitReady(ctx, names...) })
	for _, h := range hosts {
		checkConfiguredOnce(c.T, c.undisruptedSteps, h)
	}

	if err := c.env.DeleteInstances(c.Context()); err != nil {
		c.Fatal(err)
	}
	c.runUntil(c.removal, func(ctx context.Context) error {
		for _, name := range names {
			if err := c.env.WaitGone(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
	for _, h := range hosts {
		if diff := cmp.Diff(before[h.Options.Name], h.Machine().Snapshot()); diff != "" {
			c.Errorf("host %s is not as it was (-before +after):\n%s", h.Options.Name, diff)
		}
		if restarts := h.Machine().Journal().Count(fake.KindReboot); restarts != 2 {
			c.Errorf("host %s was restarted %d times, want once to join and once to leave", h.Options.Name, restarts)
		}
		checkNothingLeft(c.T, c.env, h.Options.Name)
	}
}

// ownFiles writes a file of the host's owner into the node's directory.
func ownFiles(t *testing.T, h *testenv.Host) {
	t.Helper()
	drive := h.Machine().Drive()
	if err := drive.MkdirAll(`C:\k`); err != nil {
		t.Fatal(err)
	}
	if err := drive.WriteFile(`C:\k\inventory.txt`, []byte("property of Example Corp.\n")); err != nil {
		t.Fatal(err)
	}
}
