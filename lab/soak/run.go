// Package soak runs a small fleet for a month of virtual time with the usual events. Certificates are renewed,
// authorities and keys replaced, settings changed, the operator upgraded, hosts listed, unlisted, restarted and
// replaced, and the control plane restarted. At the end of each day it measures memory, goroutines, open files,
// logs, API objects, metrics and the files on hosts, and reports growth.
//
// Operator, agents, hosts, the Machine API and the programs of the nodes follow virtual time, which starts a
// month ago. API server, controller manager, scheduler, the simulated OpenShift controllers, and client-go
// follow the real clock. Their actions are therefore less frequent than in a real month. For that reason,
// kubelets and OVN-Kubernetes renew certificates of ten minutes. Events and completed certificate requests,
// which live for an hour, are counted and deleted at the end of each day. Token renewals and watch timeouts
// occur only as often as in the real duration of the run.
//
// Operator and hosts share one process, because virtual time requires it. Memory, goroutines and open files of
// this process are measured. A leak of the lab is therefore visible as well.
package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Options configure a run.
type Options struct {
	// Days is the number of days, at least three.
	Days int
	// Releases are the releases of the operator in order: one more than the number of upgrades.
	Releases []testenv.Release
	// Stride is the part of a day that passes at once while the fleet is idle.
	Stride time.Duration
	// Timeout is the timeout for the fleet to reach the desired state, by the real clock.
	Timeout time.Duration
	// Dir receives the operator's log, and the goroutine and memory profiles of each day.
	Dir string
	// Progress receives a line for each action.
	Progress func(format string, arguments ...any)
}

// Releases is the number of releases that a run needs.
const Releases = 3

// Report is the result of a run.
type Report struct {
	Days     []Day
	Verdicts []Verdict
	Elapsed  time.Duration
	// Done counts the actions.
	Done map[Action]int
}

// Run runs all days and returns the verdicts.
func Run(ctx context.Context, options Options) (report Report, err error) {
	if options.Days < 3 || len(options.Releases) < Releases {
		return report, fmt.Errorf("soak: %d days with %d releases: it needs 3 days and %d releases", options.Days, len(options.Releases), Releases)
	}
	start := time.Now()
	l, stop, err := newLab(ctx, options)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for number := range options.Days {
		values, err := l.runDay(ctx, number)
		if err != nil {
			return report, fmt.Errorf("day %d: %w", number+1, err)
		}
		report.Days = append(report.Days, values)
		options.Progress("day %d after %s: %.1f MiB, %.0f goroutines, %.0f files, %.0f objects", number+1,
			time.Since(start).Round(time.Second), values[Heap], values[Goroutines], values[OpenFiles], values[Objects])
	}
	report.Elapsed, report.Done = time.Since(start), l.runsByAction
	report.Verdicts, err = Judge(report.Days, Cycle(options.Days))
	return report, err
}

// runDay runs a day and measures at its end.
func (l *lab) runDay(ctx context.Context, number int) (Day, error) {
	begins := l.epoch.Add(time.Duration(number+1) * day) // the fleet was created on the day before
	if err := l.strideUntil(ctx, begins.Add(changesBegin)); err != nil {
		return nil, err
	}
	open := false
	for _, action := range Plan(number, l.options.Days) {
		if !action.isBeforeWindow() && !open {
			if err := l.openWindow(ctx, begins); err != nil {
				return nil, err
			}
			open = true
		}
		l.options.Progress("day %d, %s: %s", number+1, l.clock.Now().Format(time.TimeOnly), action)
		if err := l.runAction(ctx, action); err != nil {
			return nil, err
		}
		if open {
			if err := l.awaitConvergence(ctx, string(action)); err != nil {
				return nil, err
			}
		}
	}
	if err := l.strideUntil(ctx, begins.Add(day-time.Minute)); err != nil {
		return nil, err
	}
	if err := l.awaitConvergence(ctx, "the end of the day"); err != nil {
		return nil, err
	}
	values, err := l.measureDay(ctx)
	return values, errors.Join(err, l.writeProfiles(number))
}

// openWindow waits for the maintenance window and the disruptions in it.
func (l *lab) openWindow(ctx context.Context, begins time.Time) error {
	if err := l.strideUntil(ctx, begins.Add(windowOpens)); err != nil {
		return err
	}
	return l.awaitConvergence(ctx, "the maintenance window opens")
}
