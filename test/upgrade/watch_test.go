package upgrade

import (
	"context"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// watched records the availability of a fleet and checks its limits.
type watched struct {
	lab
	availability *testenv.Availability
}

// watchAvailability starts to record the availability of all Windows nodes, and of the workload's pods if there are
// any.
func (l lab) watchAvailability(w *workload, except ...string) watched {
	l.Helper()
	options := testenv.AvailabilityOptions{Except: except}
	if w != nil {
		options.PodNamespace, options.PodLabels = w.namespace, w.podLabels()
	}
	a, err := l.WatchAvailability(l.Context(), options)
	l.requireNoError(err)
	l.Cleanup(a.Stop)
	return watched{l, a}
}

// readReport returns the record until now.
func (w watched) readReport() (report testenv.AvailabilityReport) {
	w.Helper()
	w.runWithTimeout(waitTimeout, func(ctx context.Context) (err error) {
		report, err = w.availability.Report(ctx)
		return err
	})
	return report
}

// checkBudget checks that the number of unavailable nodes never exceeded the budget and that the disruption policy
// listed each of them. At least minHealthy pods must always have been healthy.
func (w watched) checkBudget(budget, minHealthy int) testenv.AvailabilityReport {
	w.Helper()
	report := w.readReport()
	if report.MaxUnavailable > budget {
		w.Errorf("%d nodes were unavailable at once, and the budget is %d", report.MaxUnavailable, budget)
	}
	if report.MaxDisruptions > budget {
		w.Errorf("the gate let %d nodes be disturbed at once, and the budget is %d", report.MaxDisruptions, budget)
	}
	if len(report.Ungated) > 0 {
		w.Errorf("nodes were disturbed that the gate had not written down:\n%s", strings.Join(report.Ungated, "\n"))
	}
	if report.MinHealthy >= 0 && report.MinHealthy < minHealthy {
		w.Errorf("only %d pods were healthy, and the PodDisruptionBudget wants %d", report.MinHealthy, minHealthy)
	}
	if w.Failed() {
		w.Logf("what happened:\n%s", strings.Join(report.Timeline, "\n"))
	}
	return report
}

// quietPeriod is the minimum time without activity for a cluster to count as silent.
const quietPeriod = 4 * time.Second

// waitForIdle waits for a period in which the operator requests only its leases from the API server, and connects
// to no host.
func (l lab) waitForIdle() {
	l.Helper()
	e2e.RequireIdle(l.T, l.Environment, quietPeriod, nil)
}

// waitForReadsOnly waits for a period in which the operator sends only read requests, such as checks whether it may
// continue, and connects to no host.
func (l lab) waitForReadsOnly() {
	l.Helper()
	e2e.RequireIdle(l.T, l.Environment, quietPeriod, func(e audit.Event) bool { return e.Verb != "get" && e.Verb != "list" })
}

// allHosts returns all listed hosts and all hosts of Machines, including former ones.
func (l lab) allHosts() []*testenv.Host { return append(l.Hosts(), l.MachineHosts()...) }

// receivedBytes returns the number of bytes that a host has received over SSH.
func receivedBytes(h *testenv.Host) int64 { return h.Machine().Journal().Bytes(fake.KindReceived) }

// serviceOperations returns the number of operations on services of a host.
func serviceOperations(h *testenv.Host) int {
	return len(h.Machine().Journal().Entries(isServiceEntry))
}

// isServiceEntry reports whether an entry is about a service. It excludes the entries for missing restarts after a
// crash, because a rolled back change has crashed the service before.
func isServiceEntry(e fake.Entry) bool {
	return e.Kind == fake.KindService && !strings.HasPrefix(e.Detail, "no restart of ")
}

// lastServices returns the last journal entries of a host about services.
func lastServices(h *testenv.Host, n int) (events []string) {
	entries := h.Machine().Journal().Entries(isServiceEntry)
	for _, e := range entries[max(0, len(entries)-n):] {
		events = append(events, e.Time.Format("15:04:05.000 ")+e.Detail)
	}
	return events
}

// bootCount returns the number of boots of a host.
func bootCount(h *testenv.Host) int {
	return len(h.Machine().Journal().Entries(func(e fake.Entry) bool {
		return e.Kind == fake.KindPower && e.Detail == "boot"
	}))
}
