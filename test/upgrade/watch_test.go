package upgrade

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/rig"
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

// kept checks that no more nodes were unavailable than the budget, that the gate knew of each, and that so many pods were healthy all the time.
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

// silent waits until there is a time in which the operator asks the API server for nothing but its leases, and no host is contacted.
func (l lab) silent() {
	l.Helper()
	l.quiet(func(string) bool { return true })
}

// still waits until there is a time in which the operator changes nothing, and no host is contacted. It may ask whether it may go on.
func (l lab) still() {
	l.Helper()
	l.quiet(func(request string) bool {
		verb, _, _ := strings.Cut(request, " ")
		return verb != "get" && verb != "list"
	})
}

// quiet waits until there is a time without requests that count, and without connections.
func (l lab) quiet(counts func(request string) bool) {
	l.Helper()
	deadline := time.Now().Add(limit)
	for {
		before, hosts := l.auditLength(), l.connections()
		time.Sleep(quietTime) // That nothing happens shows only in time.
		requests := slices.DeleteFunc(l.requests(before), func(request string) bool { return !counts(request) })
		if contacts := l.connections() - hosts; contacts > 0 {
			requests = append(requests, "connections to hosts")
		}
		if len(requests) == 0 {
			return
		}
		if time.Now().After(deadline) {
			l.Errorf("with nothing to do, the operator did within %s:\n%s", quietTime, strings.Join(requests, "\n"))
			return
		}
	}
}

func (l lab) auditLength() int64 {
	l.Helper()
	info, err := os.Stat(l.Cluster().AuditLog)
	l.must(err)
	return info.Size()
}

// requests are those of the operator after a place in the audit log, without leases, and without watches, which go on.
func (l lab) requests(from int64) (requests []string) {
	l.Helper()
	log, err := os.ReadFile(l.Cluster().AuditLog)
	l.must(err)
	lines := bufio.NewScanner(bytes.NewReader(log[from:]))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Verb, RequestURI string
			User             struct{ Username string }
			Ref              struct{ Resource string } `json:"objectRef"`
		}
		if json.Unmarshal(lines.Bytes(), &entry) != nil {
			continue // the last line may be half written
		}
		if entry.User.Username != "system:serviceaccount:"+l.Namespace()+":windows-machine-config-operator" ||
			entry.Ref.Resource == "leases" || entry.Verb == "watch" {
			continue
		}
		requests = append(requests, entry.Verb+" "+entry.RequestURI)
	}
	l.must(lines.Err())
	return requests
}

// allHosts are all that there are and were.
func (l lab) allHosts() []*rig.Host { return append(l.Hosts(), l.MachineHosts()...) }

// connections is how many SSH connections hosts have had.
func (l lab) connections() (n int) {
	for _, h := range l.allHosts() {
		n += h.Machine().Journal().Count(fake.KindConnection)
	}
	return n
}

// received is how many bytes a host has got over SSH.
func received(h *rig.Host) int64 { return h.Machine().Journal().Bytes(fake.KindReceived) }

// services is how often something was done to services of a host.
func services(h *rig.Host) int { return len(h.Machine().Journal().Entries(ofServices)) }

// ofServices leaves out that Windows did not restart a service after a crash: a change that was rolled back before has crashed it.
func ofServices(e fake.Entry) bool {
	return e.Kind == fake.KindService && !strings.HasPrefix(e.Detail, "no restart of ")
}

// lastServices are the last entries of a host's journal that are of services.
func lastServices(h *rig.Host, n int) (told []string) {
	entries := h.Machine().Journal().Entries(ofServices)
	for _, e := range entries[max(0, len(entries)-n):] {
		told = append(told, e.Time.Format("15:04:05.000 ")+e.Detail)
	}
	return told
}

// boots is how often a host was started.
func boots(h *rig.Host) int {
	return len(h.Machine().Journal().Entries(func(e fake.Entry) bool { return e.Kind == fake.KindPower && e.Detail == "boot" }))
}
