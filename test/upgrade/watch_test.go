package upgrade

import (
	"context"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
)

// watched is what is followed of a fleet, and what must hold of it.
type watched struct {
	lab
	availability *rig.Availability
}

// watch begins to follow the availability of all Windows nodes, and of the workload's pods where there is one.
func (l lab) watch(w *workload, except ...string) watched {
	l.Helper()
	options := rig.AvailabilityOptions{Except: except}
	if w != nil {
		options.PodNamespace, options.PodLabels = w.namespace, w.labels()
	}
	a, err := l.WatchAvailability(l.Context(), options)
	l.must(err)
	l.Cleanup(a.Stop)
	return watched{l, a}
}

// report is what has happened until now.
func (w watched) report() (report rig.AvailabilityReport) {
	w.Helper()
	w.within(limit, func(ctx context.Context) (err error) {
		report, err = w.availability.Report(ctx)
		return err
	})
	return report
}

// kept checks that no more nodes were unavailable than the budget, that the gate knew of each, and that so many pods
// were healthy all the time.
func (w watched) kept(budget, minHealthy int) rig.AvailabilityReport {
	w.Helper()
	report := w.report()
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

// quietTime is how long nothing may happen for a cluster to be silent.
const quietTime = 4 * time.Second

// silent waits until there is a time in which the operator asks the API server for nothing but its leases, and no host
// is contacted.
func (l lab) silent() {
	l.Helper()
	rigtest.Silent(l.T, l.Rig, quietTime, nil)
}

// still waits until there is a time in which the operator changes nothing, and no host is contacted. It may ask whether
// it may go on.
func (l lab) still() {
	l.Helper()
	rigtest.Silent(l.T, l.Rig, quietTime, func(e audit.Event) bool { return e.Verb != "get" && e.Verb != "list" })
}

// allHosts returns all that there are and were.
func (l lab) allHosts() []*rig.Host { return append(l.Hosts(), l.MachineHosts()...) }

// received is how many bytes a host has got over SSH.
func received(h *rig.Host) int64 { return h.Machine().Journal().Bytes(fake.KindReceived) }

// services is how often something was done to services of a host.
func services(h *rig.Host) int { return len(h.Machine().Journal().Entries(ofServices)) }

// ofServices leaves out that Windows did not restart a service after a crash: a change that was rolled back before has
// crashed it.
func ofServices(e fake.Entry) bool {
	return e.Kind == fake.KindService && !strings.HasPrefix(e.Detail, "no restart of ")
}

// lastServices returns the last entries of a host's journal that are of services.
func lastServices(h *rig.Host, n int) (told []string) {
	entries := h.Machine().Journal().Entries(ofServices)
	for _, e := range entries[max(0, len(entries)-n):] {
		told = append(told, e.Time.Format("15:04:05.000 ")+e.Detail)
	}
	return told
}

// boots is how often a host was started.
func boots(h *rig.Host) int {
	return len(h.Machine().Journal().Entries(func(e fake.Entry) bool {
		return e.Kind == fake.KindPower && e.Detail == "boot"
	}))
}
