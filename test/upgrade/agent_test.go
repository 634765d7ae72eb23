package upgrade

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// For a patch release, the operator sends only the changed files to a host, including the agent. R-086
func TestUpgrade_PatchReleaseSendsChangedFilesOnly(t *testing.T) {
	l := start(t, withoutMachines, testenv.Options{Hosts: testenv.Hosts(1), LinuxNodes: 1})
	o := l.startOperator(initial)
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitUntilUpgraded(initial, 1, waitTimeout)
	h := l.Hosts()[0]
	journal := h.Machine().Journal()
	first := receivedBytes(h)

	for _, name := range []string{patch, patch2} {
		execs, connections, received := len(journal.Entries(isCommandLine)), journal.Count(fake.KindConnection), receivedBytes(h)
		o = l.upgradeOperator(o, name)
		l.waitUntilUpgraded(name, 1, waitTimeout)
		l.waitForIdle()
		execs, connections, received = len(journal.Entries(isCommandLine))-execs, journal.Count(fake.KindConnection)-connections,
			receivedBytes(h)-received
		t.Logf("%s: %d verbs over %d connections, %d bytes, %.1f %% of the %d of the first time", name,
			execs, connections, received, 100*float64(received)/float64(first), first)
		if execs > 8 || connections > 2 || received*10 > first {
			t.Errorf("%s took %d verbs over %d connections and %d bytes of at first %d", name, execs,
				connections, received, first)
		}
	}

	//
	held := t.Run("a release that needs a later patch version of the cluster waits for it, and goes on by itself",
		func(t *testing.T) {
			l.forSubtest(t).checkClusterVersionWait(o, h)
		})
	if !held {
		return
	}
	//
	t.Run("with a release comes every program of a node, whichever of them is another one", func(t *testing.T) {
		l.forSubtest(t).checkPrograms(otherComponents, patch2, h)
	})
}

// isCommandLine reports whether an entry is a command line over SSH.
func isCommandLine(e fake.Entry) bool { return e.Kind == fake.KindExec }
