package test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// killLimit is the maximum time until all hosts are through their kills.
const killLimit = 10 * time.Minute

// fewest contains the minimum numbers of boundaries. With fewer boundaries, the test no longer detects them.
type fewest struct{ configuration, removal int }

// The operator is killed at every boundary between two steps of a first configuration and of a removal, and then
// replaced.
func TestAnOperatorKilledAtAnyStepIsReplacedWithoutHarm(t *testing.T) {
	killedAtAnyStep(t, besides(t), newReaper(t), 10, fewest{configuration: 130, removal: 40})
}

// The agent is killed before each of its changes during a first configuration and a removal, and the operator runs
// it again.
func TestAnAgentKilledAtAnyStepIsRunAgainWithoutHarm(t *testing.T) {
	controlPlane := besides(t)
	k := newReaper(t)
	k.agentsOnly = true
	killedAtAnyStep(t, controlPlane, k, 14, fewest{configuration: 90, removal: 25})
}

// killedAtAnyStep configures and restores hosts under kills. Each host becomes Ready, no step that must run once is
// repeated, and in the end each host is restored to its original state.
func killedAtAnyStep(t *testing.T, controlPlane *cluster.Cluster, k *reaper, hosts int, atLeast fewest) {
	r := installed(t, rig.Options{Cluster: controlPlane, Hosts: rig.Hosts(1 + hosts), Clock: fastClock(t, k.occupied)})
	t.Cleanup(k.end)
	for _, h := range r.Hosts() {
		k.attach(r, h)
	}
	k.allAtOnce() // otherwise hosts are restored one after the other
	reference, group := r.Hosts()[0], r.Hosts()[1:]
	c := &killCycle{reaper: k}
	c.configuration = k.learn(func() {
		list(t, r, reference.Options.Name)
		ready(t, r, reference.Options.Name)
	})
	c.undisturbed = once(reference)
	c.removal = k.learn(func() {
		if err := r.DeleteInstances(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone(t, r, reference.Options.Name)
	})
	seen := observe(t, r)

	k.start()
	c.run(group)
	for range spares {
		if len(c.configuration.left())+len(c.removal.left()) == 0 {
			break
		}
		// Every host was past a boundary when an operator was killed elsewhere: add another host.
		h, err := r.AddHost(t.Context(), rig.HostOptions{})
		if err != nil {
			t.Fatal(err)
		}
		k.attach(r, h)
		c.run([]*rig.Host{h})
	}
	k.visited("configuration", c.configuration, atLeast.configuration)
	k.visited("removal", c.removal, atLeast.removal)
	seen.unique(t, 4*hosts)
}

// spares is the maximum number of additional hosts if boundaries are left after the first hosts.
const spares = 4

// killCycle configures and restores hosts under kills.
type killCycle struct {
	*reaper
	configuration, removal boundaries
	undisturbed            map[string]int // see once
}

// run configures hosts and restores them.
func (c *killCycle) run(hosts []*rig.Host) {
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

	list(c.T, c.rig, names...)
	c.runUntil(c.configuration, func(ctx context.Context) error { return c.rig.WaitReady(ctx, names...) })
	for _, h := range hosts {
		configuredOnce(c.T, c.undisturbed, h)
	}

	if err := c.rig.DeleteInstances(c.Context()); err != nil {
		c.Fatal(err)
	}
	c.runUntil(c.removal, func(ctx context.Context) error {
		for _, name := range names {
			if err := c.rig.WaitGone(ctx, name); err != nil {
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
		nothingLeft(c.T, c.rig, h.Options.Name)
	}
}

// ownFiles writes a file of the host's owner into the node's directory.
func ownFiles(t *testing.T, h *rig.Host) {
	t.Helper()
	drive := h.Machine().Drive()
	if err := drive.MkdirAll(`C:\k`); err != nil {
		t.Fatal(err)
	}
	if err := drive.WriteFile(`C:\k\inventory.txt`, []byte("property of Example Corp.\n")); err != nil {
		t.Fatal(err)
	}
}
