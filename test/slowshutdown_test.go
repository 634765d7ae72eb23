package test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// commandsDuringRestart returns the agent commands that a host received between each accepted restart and the boot
// after it.
func commandsDuringRestart(journal *fake.Journal) (commands [][]string) {
	waits := false
	for _, e := range journal.Entries(nil) {
		words := strings.Fields(e.Detail)
		switch {
		case e.Kind == fake.KindReboot:
			waits, commands = true, append(commands, nil)
		case e.Kind == fake.KindPower && e.Detail == "boot":
			waits = false
		case waits && e.Kind == winhost.KindCommand && len(words) > 1:
			commands[len(commands)-1] = append(commands[len(commands)-1], words[1])
		}
	}
	return commands
}

// after accepting a restart, Windows and its SSH server continue for a while.
func TestRestart_HostIsOnlyInspectedUntilShutdown(t *testing.T) {
	// This is long enough for an inspection, even on a machine that is busy with other tests.
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{ShutdownDelay: 8 * time.Second, RebootDuration: time.Second}}})
	journal := r.Host("instance-1").Machine().Journal()
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	instance, err := r.Instance(t.Context(), "instance-1")
	if err != nil {
		t.Fatal(err)
	}
	expectOnlyReads := func(t *testing.T, restarts int) {
		t.Helper()
		verbs := commandsDuringRestart(journal)
		if len(verbs) != restarts {
			t.Fatalf("%d restarts, want %d", len(verbs), restarts)
		}
		if last := verbs[restarts-1]; len(last) == 0 || slices.ContainsFunc(last, func(verb string) bool {
			return verb != "facts"
		}) {
			t.Errorf("before the host went down it was told to %q, want looks alone; its journal: %s", last, formatJournal(journal))
		}
		var events eventsv1.EventList
		if err := r.Client.List(t.Context(), &events); err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Type == corev1.EventTypeWarning && e.Regarding.UID == instance.UID {
				t.Errorf("event %s: %s", e.Reason, e.Note)
			}
		}
	}
	t.Run("on its way to a node, and configured once", func(t *testing.T) {
		expectOnlyReads(t, 1)
		times := map[string]int{}
		for _, e := range journal.Entries(nil) {
			if e.Kind == fake.KindFeature || strings.HasPrefix(e.Detail, "configure ") {
				times[e.Detail]++
			}
		}
		for what, n := range times {
			if n > 1 {
				t.Errorf("%s: %d times", what, n)
			}
		}
		if len(times) < 8 {
			t.Errorf("the journal has only %v", times)
		}
	})
	t.Run("on its way back to what it was", func(t *testing.T) {
		if err := r.DeleteInstances(t.Context()); err != nil {
			t.Fatal(err)
		}
		waitUntilDeleted(t, r, "instance-1")
		expectOnlyReads(t, 2)
	})
}
