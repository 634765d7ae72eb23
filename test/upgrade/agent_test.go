package upgrade

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// For a patch release, the operator sends only the changed files to a host, including the agent. R-086
func TestAPatchReleaseSendsWhatDiffers(t *testing.T) {
	l := start(t, withoutMachines, rig.Options{Hosts: rig.Hosts(1), LinuxNodes: 1})
	o := l.operate(initial)
	l.must(l.ListHosts(t.Context()))
	l.upgraded(initial, 1, limit)
	h := l.Hosts()[0]
	journal := h.Machine().Journal()
	first := received(h)

	for _, name := range []string{patch, patch2} {
		execs, connections, whole := len(journal.Entries(verbs)), journal.Count(fake.KindConnection), received(h)
		o = l.raise(o, name)
		l.upgraded(name, 1, limit)
		l.silent()
		execs, connections, whole = len(journal.Entries(verbs))-execs, journal.Count(fake.KindConnection)-connections,
			received(h)-whole
		t.Logf("%s: %d verbs over %d connections, %d bytes, %.1f %% of the %d of the first time", name,
			execs, connections, whole, 100*float64(whole)/float64(first), first)
		if execs > 8 || connections > 2 || whole*10 > first {
			t.Errorf("%s took %d verbs over %d connections and %d bytes of at first %d", name, execs,
				connections, whole, first)
		}
	}

	//
	held := t.Run("a release that needs a later patch version of the cluster waits for it, and goes on by itself",
		func(t *testing.T) {
			l.in(t).waitsForTheCluster(o, h)
		})
	if !held {
		return
	}
	//
	t.Run("with a release comes every program of a node, whichever of them is another one", func(t *testing.T) {
		l.in(t).runsEverythingOf(others, patch2, h)
	})
}

// verbs reports whether an entry is a command line over SSH.
func verbs(e fake.Entry) bool { return e.Kind == fake.KindExec }
