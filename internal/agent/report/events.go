// Package report publishes the findings and repairs of the agent's service: as events in Windows' event log, and as the
// condition WindowsConfiguration of the host's Node, which it sends to the API server with the kubelet's credentials. It
// repairs nothing. Nothing waits for the API server, and no answer of the API server changes the host.
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

// IDs of the events that the service writes to Windows' event log.
const (
	EventRepaired      = 1 // something differed from the spec and was put back
	EventNotRepaired   = 2 // something differs and putting it back has failed
	EventServiceFailed = 3 // a service of the node does not start or stop
	EventLeft          = 4 // something differs that only the operator can put back
	EventRecovered     = 5 // what 2, 3 or 4 reported is over
)

// maxTold is of how many events the service remembers that it has written them.
const maxTold = 1000

// Events writes what administrators must see to Windows' event log. It reports a fault that lasts, or comes back
// soon, once.
type Events struct {
	host  host.EventLog
	clock clock.PassiveClock
	log   *logs.Own

	trouble string               // what is not repaired now, as the log says; empty when nothing is
	shown   string               // the same as the event log says
	told    map[string]time.Time // when an event was last written
}

// NewEvents returns what tells outcomes, and writes into a log what the event log does not take.
func NewEvents(to host.EventLog, clock clock.PassiveClock, log *logs.Own) *Events {
	return &Events{host: to, clock: clock, log: log}
}

// Report tells what is new about an outcome.
func (e *Events) Report(ctx context.Context, o Outcome) {
	e.repaired(ctx, o.Repairs)
	if o.Skipped {
		return // a verb changes the host meanwhile: nothing is known
	}
	trouble, event := o.Trouble()
	key := trouble
	if trouble == "" {
		event = host.Event{Level: host.EventInformation, ID: EventRecovered, Message: "The host matches its configuration again."}
		key = "recovered from " + e.shown
	}
	if trouble != e.trouble {
		e.trouble = trouble
		e.log.Printf(ctx, "%s", event.Message)
	}
	// Trouble that comes and goes faster than events are repeated is shown as it is when the next one may be written.
	if trouble != e.shown && e.event(ctx, key, event) {
		e.shown = trouble
	}
}

// repaired tells what was done in one event. The log has each step since it was done.
func (e *Events) repaired(ctx context.Context, repairs []Repair) {
	repairs = slices.DeleteFunc(slices.Clone(repairs), func(r Repair) bool { return r.Start })
	if len(repairs) == 0 {
		return
	}
	message, key := "Drift was repaired:", ""
	for _, step := range repairs {
		message += "\r\n" + step.Name + ", because " + step.Reason
		key += step.Name + "\n"
	}
	e.event(ctx, key, host.Event{Level: host.EventInformation, ID: EventRepaired, Message: message})
}

// event writes to the event log, unless that was done for the same only just. An event log that is full or away keeps
// nobody from working.
func (e *Events) event(ctx context.Context, key string, event host.Event) (written bool) {
	now := e.clock.Now()
	if at, known := e.told[key]; known && now.Sub(at) < timeouts.EventRepeat {
		return false
	}
	if e.told == nil || len(e.told) >= maxTold {
		e.told = map[string]time.Time{}
	}
	e.told[key] = now
	event.Source = plan.EventSource
	if err := e.host.Report(ctx, event); err != nil && ctx.Err() == nil {
		e.log.Printf(ctx, "the event log does not accept events: %v", err)
	}
	return true
}
