package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// RequireIdle waits for a period of the given length without connections to hosts and without counted requests of
// the operator to the API server; with nil, every request counts. Leases and watches never count. The control plane
// must write an audit log.
func RequireIdle(t *testing.T, r *testenv.Environment, quiet time.Duration, counts func(audit.Event) bool) {
	t.Helper()
	listener, err := r.MonitorActivity()
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(WaitTimeout); ; {
		time.Sleep(quiet) // Silence requires a wait.
		requests, connections, err := listener.NextActivity()
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

// IsHostActivity reports whether a journal entry of a host is unrelated to the operator: processes of the host, and the
// traffic of a connection that a stopped operator may have left and that is summed up late. A new connection has
// entries of other kinds as well.
func IsHostActivity(e fake.Entry) bool {
	return e.PID != 0 || e.Kind == fake.KindReceived || e.Kind == fake.KindSent
}
