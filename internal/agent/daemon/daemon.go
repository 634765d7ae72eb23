// Package daemon is the agent's service: it holds the host to the spec that the operator left there, looks for what has
// changed, and repairs it. It never restarts the host, needs neither the operator nor the API server, and with nothing
// to repair it writes nothing. After a boot, and while the node's network is missing, it knows which services Windows
// starts, which steps wait for the HNS network, and which are a start and no repair.
package daemon

import (
	"context"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agent/facts"
	"github.com/windows-machine-config/wmco/internal/agent/identity"
	"github.com/windows-machine-config/wmco/internal/agent/installdir"
	"github.com/windows-machine-config/wmco/internal/agent/logs"
	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
)

// Parts are what the service works with.
type Parts struct {
	// Means are for steps. Their answers go nowhere: the log has its own words.
	execute.Means
	Source *facts.Source
	Lock   installdir.Lock
	Log    *logs.Own
	// API takes the Node's condition WindowsConfiguration; nil for nowhere.
	API report.APIServer
}

// Run holds the host to its spec until ctx is done. It calls ready, unless that is nil, when it runs.
func Run(ctx context.Context, p Parts, ready func()) {
	p.Source.KeepAnswers()
	k := &keeper{
		Parts: p, watcher: watcher{host: p.Host, records: p.Records},
		network: newNetwork(p.Host.Networks, p.Clock),
		events:  report.NewEvents(p.Host.EventLog, p.Clock, p.Log),
		logs:    logs.NewKeeper(p.Host, p.Clock, p.Log),
		messenger: report.NewMessenger(report.MessengerMeans{
			API: p.API, Files: p.Host.Files, Clock: p.Clock, Rand: p.Rand, Version: p.Version,
		}, p.Log),
		former: identity.Former{Files: p.Host.Files, Clock: p.Clock},
	}
	p.Log.Printf(ctx, "agent %s runs as a service, process %d", p.Version, p.Host.Processes.Self())
	if ready != nil {
		ready()
	}
	k.loop(ctx)
	ctx = context.WithoutCancel(ctx)
	k.messenger.End(ctx)
	p.Log.Printf(ctx, "the service received a stop request")
	p.Log.Flush(ctx)
}

// maxFailed is how many comparisons in a row may fail for want of facts before the failure is reported.
const maxFailed = 3

// keeper repairs drift. It looks often at what is cheap to look at, and compares everything with the spec when that has
// changed, and from time to time. It polls: NotifyServiceStatusChange tells of states but not of another command line,
// and needs a handle to each service for as long as it waits, with which Windows cannot let go of a deleted service,
// and a repair could not make it anew.
type keeper struct {
	Parts
	watcher   watcher
	events    *report.Events
	messenger *report.Messenger
	pacer     pacer
	boot      *bootTime
	network   *awaitedNetwork
	logs      *logs.Keeper
	former    identity.Former
	due       time.Time // of the next comparison without a change
	changed   bool      // since the last comparison
	failed    int       // comparisons in a row that could not be made
}

func (k *keeper) loop(ctx context.Context) {
	ticker := k.Clock.NewTicker(timeouts.DriftPoll)
	defer ticker.Stop()
	k.due = k.Clock.Now()
	k.boot = newBoot(k.Host, k.Clock)
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
		k.logs.Look(ctx, k.watcher.spec.Logs)
		k.messenger.Look(ctx, *k.watcher.spec)
		if err := k.former.Look(ctx, *k.watcher.spec); err != nil && ctx.Err() == nil {
			k.Log.Printf(ctx, "former certificates are left: %v", err)
		}
	}
	now := k.Clock.Now()
	due := !now.Before(k.due) || k.changed && !now.Before(k.pacer.next)
	if k.boot.Waits(ctx, k.watcher.up, k.watcher.allRun) || !due && !k.network.Arrived(ctx) {
		k.Log.Flush(ctx)
		return
	}
	k.due, k.changed = now.Add(timeouts.DriftCheck), false
	k.network.AskAgain()
	k.check(ctx)
	// What has changed meanwhile, by a repair too, is seen by the next look: a change during the comparison must not be
	// lost.
	k.Log.Flush(ctx)
}

// check compares the host with the spec, repairs what differs and reports.
func (k *keeper) check(ctx context.Context) {
	outcome := k.examine(ctx)
	if ctx.Err() != nil {
		return // the service stops; what was cut off is drift for the next one
	}
	now := k.Clock.Now()
	k.pacer.tried(outcome.Tried(), now)
	if outcome.Failure == nil && !outcome.Skipped && !k.network.Awaited() {
		k.boot.NodeIsUp()
	}
	if outcome.Failure == nil || outcome.Failure.Step != "" {
		k.failed = 0
	} else if k.failed++; k.failed < maxFailed {
		k.due = now.Add(timeouts.DriftPoll) // a part of Windows may not be up yet; nobody needs to know
		return
	}
	k.events.Report(ctx, outcome)
	k.messenger.Note(outcome)
}
