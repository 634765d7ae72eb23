// Package soak has a small fleet live for a month in virtual time, with what happens in a month: certificates are
// renewed, authorities and keys replaced, settings changed, the operator upgraded, hosts listed, unlisted, restarted and
// replaced, the control plane restarted. At the end of each day it measures memory, goroutines, open files, logs, API
// objects, metrics and the files on hosts, and finds what grows.
//
// Operator, agents, hosts, the Machine API and the programs of the nodes follow virtual time, which begins a month ago.
// API server, controller manager, scheduler, the stand-ins for OpenShift's controllers, and client-go follow the real
// clock. So what they do is not as often as in a month: kubelets and OVN-Kubernetes renew certificates of ten minutes;
// Events and answered certificate requests, which live for an hour, are counted and deleted at the end of each day.
// Tokens and the watches' time limits are as often as in the time that the run takes.
//
// Operator and hosts are one process, whose memory, goroutines and open files are measured: virtual time needs them to
// be. A leak of the lab shows as well.
package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/lab/rig"
)

// Options describe a run.
type Options struct {
	// Days is how many days the fleet lives, three at least.
	Days int
	// Releases are the operator's, in their order: as many as there are upgrades, and one more.
	Releases []rig.Release
	// Stride is how much of a day passes at once while nothing happens.
	Stride time.Duration
	// Limit is how long the fleet may take until it is as it was asked for, by the real clock.
	Limit time.Duration
	// Dir takes what explains a run: the operator's log, and what goroutines and memory there were at the end of each day.
	Dir string
	// Progress learns what is done, a line each.
	Progress func(format string, arguments ...any)
}

// Releases is how many releases a run needs.
const Releases = 3

// Report is what a run has found.
type Report struct {
	Days     []Day
	Verdicts []Verdict
	Took     time.Duration
	// Done counts the deeds.
	Done map[Deed]int
}

// Run lives the days, and judges.
func Run(ctx context.Context, options Options) (report Report, err error) {
	if options.Days < 3 || len(options.Releases) < Releases {
		return report, fmt.Errorf("soak: %d days with %d releases: it needs 3 days and %d releases", options.Days, len(options.Releases), Releases)
	}
	began := time.Now()
	l, stop, err := newLab(ctx, options)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for number := range options.Days {
		values, err := l.live(ctx, number)
		if err != nil {
			return report, fmt.Errorf("day %d: %w", number+1, err)
		}
		report.Days = append(report.Days, values)
		options.Progress("day %d after %s: %.1f MiB, %.0f goroutines, %.0f files, %.0f objects", number+1,
			time.Since(began).Round(time.Second), values[Heap], values[Goroutines], values[OpenFiles], values[Objects])
	}
	report.Took, report.Done = time.Since(began), l.turns
	report.Verdicts, err = Judge(report.Days, Cycle(options.Days))
	return report, err
}

// live lives a day, and measures at its end.
func (l *lab) live(ctx context.Context, number int) (Day, error) {
	begins := l.epoch.Add(time.Duration(number+1) * day) // the fleet was made on the day before
	if err := l.strideUntil(ctx, begins.Add(changesBegin)); err != nil {
		return nil, err
	}
	open := false
	for _, deed := range Plan(number, l.options.Days) {
		if !deed.beforeWindow() && !open {
			if err := l.openWindow(ctx, begins); err != nil {
				return nil, err
			}
			open = true
		}
		l.options.Progress("day %d, %s: %s", number+1, l.clock.Now().Format(time.TimeOnly), deed)
		if err := l.do(ctx, deed); err != nil {
			return nil, err
		}
		if open {
			if err := l.settle(ctx, string(deed)); err != nil {
				return nil, err
			}
		}
	}
	if err := l.strideUntil(ctx, begins.Add(day-time.Minute)); err != nil {
		return nil, err
	}
	if err := l.settle(ctx, "the end of the day"); err != nil {
		return nil, err
	}
	values, err := l.measure(ctx)
	return values, errors.Join(err, l.profile(number))
}

// openWindow waits for the maintenance window, and for what has waited for it.
func (l *lab) openWindow(ctx context.Context, begins time.Time) error {
	if err := l.strideUntil(ctx, begins.Add(windowOpens)); err != nil {
		return err
	}
	return l.settle(ctx, "the maintenance window opens")
}
