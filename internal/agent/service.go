package agent

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/internal/verb"
)

// IsService reports whether a command line asks for the service, which a program can run only under the service control manager.
func IsService(args []string) bool { return len(args) > 0 && verb.Name(args[0]) == verb.Service }

// serve is the agent as a Windows service: it holds the host to the spec that the operator left there, until it is told to stop.
// It never restarts the host and needs neither the operator nor the API server. With nothing to repair it writes nothing.
func (a *agent) serve(ctx context.Context, p Process) int {
	log := newServiceLog(a, p.Stderr, p.Log)
	a.seen.keep, a.asked.keep = AntivirusCheck, FeatureCheck
	a.answer.out = io.Discard // steps are told to an operator; the log has its own words
	k := &keeper{
		agent: a, log: log, watcher: watcher{agent: a}, network: networkWait{agent: a},
		reporter: reporter{agent: a, log: log}, messenger: messenger{agent: a, log: log, api: p.API},
		logs: logKeeper{agent: a, log: log}, stores: storeKeeper{agent: a},
	}
	log.printf(ctx, "agent %s runs as a service, process %d", a.version, a.host.Processes.Self())
	if p.Ready != nil {
		p.Ready()
	}
	k.loop(ctx)
	ctx = context.WithoutCancel(ctx)
	k.messenger.end(ctx)
	log.printf(ctx, "the service was told to stop")
	log.flush(ctx)
	return 0
}

// keeper repairs drift. It looks often at what is cheap to look at, and compares everything with the spec when that has changed, and from
// time to time. It polls: NotifyServiceStatusChange tells of states but not of another command line, and needs a handle to each service
// for as long as it waits, with which Windows cannot let go of a deleted service, and a repair could not make it anew.
type keeper struct {
	*agent
	log       *serviceLog
	watcher   watcher
	reporter  reporter
	messenger messenger
	pacer     pacer
	boot      bootWait
	network   networkWait
	logs      logKeeper
	stores    storeKeeper
	due       time.Time // of the next comparison without a change
	changed   bool      // since the last comparison
	failed    int       // comparisons in a row that could not be made
}

func (k *keeper) loop(ctx context.Context) {
	ticker := k.clock.NewTicker(DriftPoll)
	defer ticker.Stop()
	k.due = k.clock.Now()
	k.boot = bootWait{agent: k.agent, until: k.due.Add(BootGrace)}
	for {
		k.look(ctx)
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

// look compares everything if that is due.
func (k *keeper) look(ctx context.Context) {
	k.changed = k.watcher.look(ctx) || k.changed
	if k.watcher.spec != nil {
		k.logs.look(ctx, k.watcher.spec.Logs)
		k.messenger.look(ctx, *k.watcher.spec)
		if err := k.stores.look(ctx, *k.watcher.spec); err != nil && ctx.Err() == nil {
			k.log.printf(ctx, "former certificates are left: %v", err)
		}
	}
	now := k.clock.Now()
	due := !now.Before(k.due) || k.changed && !now.Before(k.pacer.next)
	if k.boot.waits(ctx, k.watcher.up, k.watcher.allRun) || !due && !k.network.arrived(ctx) {
		k.log.flushDue(ctx)
		return
	}
	k.due, k.changed, k.network.silent = now.Add(DriftCheck), false, false
	k.check(ctx)
	// What has changed meanwhile, by a repair too, is seen by the next look: a change during the comparison must not be lost.
	k.log.flushDue(ctx)
}

// check compares the host with the spec, repairs what differs and reports.
func (k *keeper) check(ctx context.Context) {
	outcome := k.examine(ctx)
	if ctx.Err() != nil {
		return // the service stops; what was cut off is drift for the next one
	}
	now := k.clock.Now()
	k.pacer.tried(outcome.tried(), now)
	if outcome.failure == nil && !outcome.skipped && k.network.awaited == nil {
		k.boot.started = true
	}
	if outcome.failure == nil || outcome.failure.Step != "" {
		k.failed = 0
	} else if k.failed++; k.failed < maxFailed {
		k.due = now.Add(DriftPoll) // a part of Windows may not be up yet; nobody needs to know
		return
	}
	k.reporter.report(ctx, outcome)
	k.messenger.note(outcome)
}

// pacer keeps the service from trying the same repairs over and over as fast as it can, for a program that ends at its start, say.
type pacer struct {
	tries map[string]time.Time // when each step was last tried
	delay time.Duration        // until the next comparison because of a change
	next  time.Time            // not before which a change leads to a comparison
}

// tried notes steps that were done or have failed. The delay doubles while one of them comes again, up to the time between two comparisons
// without a change.
func (p *pacer) tried(steps []string, now time.Time) {
	if len(steps) == 0 {
		return
	}
	maps.DeleteFunc(p.tries, func(_ string, at time.Time) bool { return now.Sub(at) >= PaceReset })
	again := slices.ContainsFunc(steps, func(step string) bool { _, known := p.tries[step]; return known })
	p.delay = min(max(2*p.delay, DriftPoll), DriftCheck)
	if !again {
		p.delay = 0
	}
	p.next = now.Add(p.delay)
	if p.tries == nil {
		p.tries = map[string]time.Time{}
	}
	for _, step := range steps {
		p.tries[step] = now
	}
}
