package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// IDs of the events that the service writes to Windows' event log.
const (
	EventRepaired      = 1 // something differed from the spec and was put back
	EventNotRepaired   = 2 // something differs and putting it back has failed
	EventServiceFailed = 3 // a service of the node does not start or stop
	EventLeft          = 4 // something differs that only the operator can put back
	EventRecovered     = 5 // what 2, 3 or 4 have told of is over
)

// reporter tells administrators of what they must see in Windows' event log. What lasts or comes back soon is told once.
type reporter struct {
	*agent
	log     *serviceLog
	trouble string               // what is not repaired now, as the log says; empty when nothing is
	shown   string               // the same as the event log says
	told    map[string]time.Time // when an event was last written
}

// report tells what is new about an outcome.
func (r *reporter) report(ctx context.Context, o outcome) {
	r.repaired(ctx, o.repairs)
	if o.skipped {
		return // a verb changes the host meanwhile: nothing is known
	}
	trouble, event := troubleOf(o)
	key := trouble
	if trouble == "" {
		event = host.Event{Level: host.EventInformation, ID: EventRecovered, Message: "The host is as it should be again."}
		key = "recovered from " + r.shown
	}
	if trouble != r.trouble {
		r.trouble = trouble
		r.log.printf(ctx, "%s", event.Message)
	}
	// Trouble that comes and goes faster than events are repeated is shown as it is when the next one may be written.
	if trouble != r.shown && r.event(ctx, key, event) {
		r.shown = trouble
	}
}

// repaired tells what was done in one event. The log has each step since it was done.
func (r *reporter) repaired(ctx context.Context, repairs []repair) {
	repairs = slices.DeleteFunc(slices.Clone(repairs), func(r repair) bool { return r.start })
	if len(repairs) == 0 {
		return
	}
	message, key := "The host was not as it should be and was put back:", ""
	for _, step := range repairs {
		message += "\r\n" + step.name + ", because " + step.reason
		key += step.name + "\n"
	}
	r.event(ctx, key, host.Event{Level: host.EventInformation, ID: EventRepaired, Message: message})
}

// troubleOf is what an outcome leaves unrepaired, and the event for it. The first names the trouble without what differs each time, such
// as the ID of a process.
func troubleOf(o outcome) (trouble string, event host.Event) {
	var messages []string
	if o.failure != nil {
		trouble = "failure " + o.failure.Step
		if o.failure.Step == "" {
			trouble += o.failure.Message
		}
		messages = append(messages, "not repaired: "+o.failure.Error())
		event.Level, event.ID = host.EventError, EventNotRepaired
		if o.failure.Reason == verb.ReasonServiceFailed {
			event.ID = EventServiceFailed
		}
	}
	if o.left != "" {
		trouble += " left " + o.left
		messages = append(messages, "left to the operator: "+o.left)
		if o.failure == nil {
			event.Level, event.ID = host.EventWarning, EventLeft
		}
	}
	event.Message = strings.Join(messages, "; ")
	return trouble, event
}

// event writes to the event log, unless that was done for the same only just. An event log that is full or away keeps nobody from working.
func (r *reporter) event(ctx context.Context, key string, event host.Event) (written bool) {
	now := r.clock.Now()
	if at, known := r.told[key]; known && now.Sub(at) < EventRepeat {
		return false
	}
	if r.told == nil || len(r.told) >= maxTold {
		r.told = map[string]time.Time{}
	}
	r.told[key] = now
	event.Source = plan.EventSource
	if err := r.host.EventLog.Report(ctx, event); err != nil && ctx.Err() == nil {
		r.log.printf(ctx, "the event log takes no event: %v", err)
	}
	return true
}
