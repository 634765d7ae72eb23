// Package daemon runs the agent's service, which keeps the host in sync with the spec written by the operator:
// it detects and repairs drift. The service never restarts the host, needs neither the operator nor the API
// server, and writes nothing when there is no drift. After a boot, and while the node's network is missing,
// some services are left to Windows, and some steps wait for the HNS network. Steps of such a start are not
// repairs.
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

// Parts are the dependencies of the service.
type Parts struct {
	// Dependencies are the dependencies of steps. Step output is discarded: the service writes its own log.
	execute.Dependencies
	Source *facts.Source
	Lock   installdir.Lock
	Log    *logs.ServiceLog
	// API receives the Node's condition WindowsConfiguration; nil disables publishing.
	API report.APIServer
}

// Run keeps the host in sync with the spec until ctx is done. It calls ready, unless nil, once the service
// runs.
func Run(ctx context.Context, p Parts, ready func()) {
	p.Source.EnableCaching()
	k := &driftRepairer{
		Parts: p, watcher: watcher{host: p.Host, records: p.Records},
		network: newNetwork(p.Host.Networks, p.Clock),
		events:  report.NewEvents(p.Host.EventLog, p.Clock, p.Log),
		logs:    logs.NewRotator(p.Host, p.Clock, p.Log),
		publisher: report.NewPublisher(report.PublisherDependencies{
			API: p.API, Files: p.Host.Files, Clock: p.Clock, Rand: p.Rand, Version: p.Version,
		}, p.Log),
		oldCertificates: identity.OldCertificates{Files: p.Host.Files, Clock: p.Clock},
	}
	p.Log.Printf(ctx, "agent %s runs as a service, process %d", p.Version, p.Host.Processes.Self())
	if ready != nil {
		ready()
	}
	k.runLoop(ctx)
	ctx = context.WithoutCancel(ctx)
	k.publisher.End(ctx)
	p.Log.Printf(ctx, "the service received a stop request")
	p.Log.Flush(ctx)
}

// maxFailed is the number of consecutive comparisons without facts after which the failure is reported.
const maxFailed = 3

// driftRepairer repairs drift. It polls cheap indicators often, and compares the complete spec after a change and at
// intervals. Notifications are no alternative: NotifyServiceStatusChange reports states but not command lines,
// and needs an open handle to each service. With an open handle, Windows cannot release a deleted service, so a
// repair could not recreate the service.
type driftRepairer struct {
	Parts
	watcher         watcher
	events          *report.Events
	publisher       *report.Publisher
	backoff         repairBackoff
	boot            *bootTime
	network         *awaitedNetwork
	logs            *logs.Rotator
	oldCertificates identity.OldCertificates
	due             time.Time // time of the next comparison without a change
	changed         bool      // since the last comparison
	failed          int       // consecutive failed comparisons
}

func (k *driftRepairer) runLoop(ctx context.Context) {
	ticker := k.Clock.NewTicker(timeouts.DriftPollInterval)
	defer ticker.Stop()
	k.due = k.Clock.Now()
	k.boot = newBoot(k.Host, k.Clock)
	for {
		k.pollOnce(ctx)
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

// pollOnce compares everything if a comparison is due.
func (k *driftRepairer) pollOnce(ctx context.Context) {
	k.changed = k.watcher.pollState(ctx) || k.changed
	if k.watcher.spec != nil {
		k.logs.RotateIfDue(ctx, k.watcher.spec.Logs)
		k.publisher.PublishIfDue(ctx, *k.watcher.spec)
		if err := k.oldCertificates.CleanStores(ctx, *k.watcher.spec); err != nil && ctx.Err() == nil {
			k.Log.Printf(ctx, "old certificates were not deleted: %v", err)
		}
	}
	now := k.Clock.Now()
	due := !now.Before(k.due) || k.changed && !now.Before(k.backoff.next)
	if k.boot.ShouldWait(ctx, k.watcher.up, k.watcher.allRun) || !due && !k.network.HasArrived(ctx) {
		k.Log.Flush(ctx)
		return
	}
	k.due, k.changed = now.Add(timeouts.DriftCheckInterval), false
	k.network.AllowRequests()
	k.compareAndReport(ctx)
	// Changes in the meantime, including repairs, are detected by the next poll: no change during the
	// comparison is lost.
	k.Log.Flush(ctx)
}

// compareAndReport compares the host with the spec, repairs drift and reports.
func (k *driftRepairer) compareAndReport(ctx context.Context) {
	outcome := k.compareHost(ctx)
	if ctx.Err() != nil {
		return // the service stops; the next process repairs the rest
	}
	now := k.Clock.Now()
	k.backoff.recordSteps(outcome.TriedSteps(), now)
	if outcome.Failure == nil && !outcome.Skipped && !k.network.IsAwaited() {
		k.boot.NodeIsUp()
	}
	if outcome.Failure == nil || outcome.Failure.Step != "" {
		k.failed = 0
	} else if k.failed++; k.failed < maxFailed {
		k.due = now.Add(timeouts.DriftPollInterval) // a part of Windows may still be starting; do not report yet
		return
	}
	k.events.Report(ctx, outcome)
	k.publisher.RecordOutcome(outcome)
}
