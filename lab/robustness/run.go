package robustness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/audit"
)

// Report is the result of a run.
type Report struct {
	Script     Script
	Violations []Violation
	// Log is the end of the operator's log, if there are violations or an error.
	Log string
	// Traces are the logs of programs on hosts and the stacks of goroutines, if a run did not settle.
	Traces string
	// Changes and the following fields are the numbers of judged items.
	Changes, Requests, Restarts, Verbs, PodDisruptions int
	// ConvergedAfter is the time from the last action until the desired state was reached.
	ConvergedAfter time.Duration
}

// String returns the description of a failed run.
func (r Report) String() string {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintln(&b, v)
	}
	return b.String()
}

const (
	converges = "in the end everything is as it was asked for"
	isSilent  = "with nothing to do, nothing happens"
	hides     = "no secret is where anybody could read it"
)

// HasSameViolation reports whether a run has violated a rule that the other run also violated: shrinking must not
// switch from one bug to another.
func (r Report) HasSameViolation(other Report) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool {
		return slices.ContainsFunc(other.Violations, func(o Violation) bool { return o.Rule == v.Rule })
	})
}

// Run plays a script in a separate lab, and judges the result. The error is an error of the lab, not of the product.
func Run(ctx context.Context, options Options, script Script) (report Report, err error) {
	report.Script = script
	l, stop, err := newLab(ctx, options, script.Shape)
	if err != nil {
		return report, err
	}
	defer func() {
		if err = errors.Join(err, stop()); err != nil || len(report.Violations) > 0 {
			report.Log = l.lastLines(logLines)
		}
	}()
	if err := errors.Join(l.runActions(ctx, script.Actions), l.endFaults(ctx)); err != nil {
		return report, fmt.Errorf("play: %w", err)
	}
	if err := l.recordFaultsEnd(ctx); err != nil {
		return report, fmt.Errorf("note that all is mended: %w", err)
	}
	restored := time.Now()
	missing, err := l.awaitConvergence(ctx)
	if err != nil {
		return report, fmt.Errorf("wait for the end: %w", err)
	}
	report.ConvergedAfter = time.Since(restored)
	report.addViolations(converges, missing)
	if len(missing) > 0 {
		report.Traces = l.collectTraces()
	} else {
		noise, err := l.awaitIdle(ctx)
		if err != nil {
			return report, fmt.Errorf("wait for silence: %w", err)
		}
		report.addViolations(isSilent, noise)
	}
	exposed, err := l.exposedSecrets(ctx)
	if err != nil {
		return report, fmt.Errorf("look for secrets: %w", err)
	}
	evidence, err := l.collectEvidence(ctx)
	if err != nil {
		return report, fmt.Errorf("collect what has happened: %w", err)
	}
	report.addViolations(hides, append(exposed, exposedIn(evidence.Changes, l.secrets)...))
	report.Changes, report.Requests, report.Restarts = len(evidence.Changes), len(evidence.Requests), len(evidence.Restarts)
	report.Verbs, report.PodDisruptions = len(evidence.Verbs), len(evidence.PodDisruptions)
	report.Violations = append(report.Violations, Judge(evidence)...)
	return report, nil
}

// logLines is the maximum number of log lines in a report: usually the complete run.
const logLines = 200_000

func (r *Report) addViolations(rule string, violations []string) {
	for _, what := range violations {
		r.Violations = append(r.Violations, Violation{rule, what})
	}
}

// collectEvidence collects the input of Judge.
func (l *lab) collectEvidence(ctx context.Context) (Evidence, error) {
	initial, later, err := l.history.Changes(ctx)
	if err != nil {
		return Evidence{}, err
	}
	requests, err := audit.Open(l.Cluster().AuditLog).Next()
	if err != nil {
		return Evidence{}, err
	}
	e := Evidence{Changes: append(initial[:len(initial):len(initial)], later...), Requests: requests, FaultsEnd: l.faultsEnd,
		Operator: audit.ServiceAccount(l.Namespace(), "windows-machine-config-operator"), Hosts: map[string]Host{}}
	for _, h := range l.Hosts() {
		record := l.hosts[h.Options.Name]
		host := record.Host
		if record.keyUnknown {
			host.HostKeys = nil
		}
		name := h.NodeName()
		if h.Options.Name == l.shape.Impostor {
			name, host.Names = "the impostor", nil // the Node of this name belongs to another host
		}
		e.Hosts[name] = host
		for _, machine := range record.machines {
			e.addHost(h.NodeName(), machine.Journal().Entries(nil), l.connections)
		}
	}
	for _, h := range l.MachineHosts() {
		e.Hosts[h.NodeName()] = Host{Names: []string{h.NodeName(), h.Options.Name, h.MachineName()}, Addresses: []string{h.Options.Address}}
		e.addVerbs(h.NodeName(), h.Machine().Journal().Entries(nil), l.connections)
	}
	return e, nil
}

// addHost adds the entries of a host's journal.
func (e *Evidence) addHost(node string, journal []fake.Entry, dialed *connections) {
	for _, entry := range journal {
		if entry.Kind == fake.KindReboot {
			e.Restarts = append(e.Restarts, Restart{node, entry.Time})
		}
	}
	e.addVerbs(node, journal, dialed)
}

// addVerbs adds the operators' agent commands on the host.
func (e *Evidence) addVerbs(node string, journal []fake.Entry, dialed *connections) {
	e.Verbs = append(e.Verbs, dialed.operatorVerbs(node, journal)...)
	e.PodDisruptions = append(e.PodDisruptions, podDisruptions(node, journal)...)
}
