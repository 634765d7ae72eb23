package rigtest

import (
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// Silent waits until there is a time, so long, in which no host is contacted and the operator asks the API server for
// nothing that counts; nil counts everything. Leases never count, nor do watches, which go on. The control plane must
// keep an audit log.
func Silent(t *testing.T, r *rig.Rig, quiet time.Duration, counts func(audit.Event) bool) {
	t.Helper()
	listener, err := r.Listen()
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(Patience); ; {
		time.Sleep(quiet) // That nothing happens shows only in time.
		requests, connections, err := listener.Heard()
		if err != nil {
			t.Fatal(err)
		}
		var noise []string
		for _, e := range requests {
			if counts == nil || counts(e) {
				noise = append(noise, e.Verb+" "+e.URI)
			}
		}
		if connections > 0 {
			noise = append(noise, "connections to hosts")
		}
		if len(noise) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("with nothing to do, the operator did within %s:\n%s", quiet, strings.Join(noise, "\n"))
			return
		}
	}
}

// OfTheHost reports whether an entry of a host's journal says nothing of the operator's doings: its own processes, and
// the traffic of a connection that an operator which has ended may have left to be summed up late. A new connection has
// entries of other kinds as well.
func OfTheHost(e fake.Entry) bool {
	return e.PID != 0 || e.Kind == fake.KindReceived || e.Kind == fake.KindSent
}
