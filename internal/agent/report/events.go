// Package report publishes the findings and repairs of the agent's service as events in the Windows event log.
// The package also publishes the condition WindowsConfiguration of the Node, sent to the API server with the
// kubelet's credentials. It repairs nothing. Nothing waits for the API server, and no response of the API
// server changes the host.
package report

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/logs"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// IDs of the events that the service writes to the Windows event log.
const (
	EventRepaired      = 1 // drift was repaired
	EventNotRepaired   = 2 // the repair of drift has failed
	EventServiceFailed = 3 // a service of the node does not start or stop
	EventLeft          = 4 // only the operator can repair the drift
	EventRecovered     = 5 // the problem of events 2, 3 or 4 is resolved
)

// maxWrittenEvents is the maximum number of events that the service remembers as written.
const maxWrittenEvents = 1000

// Events writes messages for administrators to the Windows event log. A lasting or quickly recurring fault is
// reported once.
type Events struct {
	host  host.EventLog
	clock clock.PassiveClock
	log   *logs.ServiceLog

	loggedProblem   string               // the unrepaired problem in the log; empty if there is none
	reportedProblem string               // the problem in the event log
	writtenAt       map[string]time.Time // time of the last write of each event
}

// NewEvents returns an Events that logs errors of the event log.
func NewEvents(to host.EventLog, clock clock.PassiveClock, log *logs.ServiceLog) *Events {
	return &Events{host: to, clock: clock, log: log}
}

// Report reports the changes since the last outcome.
func (e *Events) Report(ctx context.Context, o Outcome) {
	e.reportRepairs(ctx, o.Repairs)
	if o.Skipped {
		return // a command is changing the host: the state is unknown
	}
	trouble, event := o.Problem()
	key := trouble
	if trouble == "" {
		event = host.Event{Level: host.EventInformation, ID: EventRecovered, Message: "The host matches its configuration again."}
		key = "recovered from " + e.reportedProblem
	}
	if trouble != e.loggedProblem {
		e.loggedProblem = trouble
		e.log.Printf(ctx, "%s", event.Message)
	}
	// If a problem flaps faster than events repeat, the next permitted event shows the current state.
	if trouble != e.reportedProblem && e.writeEvent(ctx, key, event) {
		e.reportedProblem = trouble
	}
}

// reportRepairs reports all repairs in one event. The log already has each step.
func (e *Events) reportRepairs(ctx context.Context, repairs []Repair) {
	repairs = slices.DeleteFunc(slices.Clone(repairs), func(r Repair) bool { return r.Start })
	if len(repairs) == 0 {
		return
	}
	message, key := "Drift was repaired:", ""
	for _, step := range repairs {
		message += "\r\n" + step.Name + ", because " + step.Reason
		key += step.Name + "\n"
	}
	e.writeEvent(ctx, key, host.Event{Level: host.EventInformation, ID: EventRepaired, Message: message})
}

// writeEvent writes to the event log, unless the same event was written recently. A full or unavailable event log
// does not stop the service.
func (e *Events) writeEvent(ctx context.Context, key string, event host.Event) (written bool) {
	now := e.clock.Now()
	if at, known := e.writtenAt[key]; known && now.Sub(at) < timeouts.EventRepeatInterval {
		return false
	}
	if e.writtenAt == nil || len(e.writtenAt) >= maxWrittenEvents {
		e.writtenAt = map[string]time.Time{}
	}
	e.writtenAt[key] = now
	event.Source = plan.EventSource
	if err := e.host.Report(ctx, event); err != nil && ctx.Err() == nil {
		e.log.Printf(ctx, "the event log does not accept events: %v", err)
	}
	return true
}
