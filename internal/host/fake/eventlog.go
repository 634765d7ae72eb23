package fake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// maxEventID is the highest ID in the message file of eventcreate.exe, which serves sources without their own message
// file.
const maxEventID = 1000

// eventLog implements host.EventLog for one process.
type eventLog struct{ p *Process }

func (l eventLog) Report(ctx context.Context, event host.Event) error {
	return l.p.runOperation(ctx, "EventLog", "Report", event.Source, func(m *Machine) error {
		switch event.Level {
		case host.EventInformation, host.EventWarning, host.EventError:
		default:
			return fmt.Errorf("report an event of %s: %w (level %q)", event.Source, errParameter, event.Level)
		}
		if event.Source == "" || event.ID < 1 || event.ID > maxEventID {
			return fmt.Errorf("report event %d of %q: %w", event.ID, event.Source, errParameter)
		}
		m.events = append(m.events, host.LoggedEvent{Time: m.clock.Now(), Event: event})
		l.p.recordEntry(KindEvent, fmt.Sprintf("%s %s %d: %s", event.Source, event.Level, event.ID, event.Message), 0)
		return nil
	})
}

func (l eventLog) HasSource(ctx context.Context, source string) (known bool, err error) {
	err = l.p.runOperation(ctx, "EventLog", "HasSource", source, func(m *Machine) error {
		_, known = m.eventSources[foldCase(source)]
		return nil
	})
	return known, err
}

func (l eventLog) AddSource(ctx context.Context, source string) error {
	return l.p.runOperation(ctx, "EventLog", "AddSource", source, func(m *Machine) error {
		if source == "" {
			return fmt.Errorf("add an event source: %w (the name is empty)", errParameter)
		}
		if _, known := m.eventSources[foldCase(source)]; !known {
			m.eventSources[foldCase(source)] = source
			l.p.recordEntry(KindEventSource, "add "+source, 0)
		}
		return nil
	})
}

func (l eventLog) RemoveSource(ctx context.Context, source string) error {
	return l.p.runOperation(ctx, "EventLog", "RemoveSource", source, func(m *Machine) error {
		if _, known := m.eventSources[foldCase(source)]; known {
			delete(m.eventSources, foldCase(source))
			l.p.recordEntry(KindEventSource, "remove "+source, 0)
		}
		return nil
	})
}

// Events returns the event log entries written by processes, oldest first. Entries persist across reboots.
func (m *Machine) Events() []host.Event {
	m.lock()
	defer m.unlock()
	events := make([]host.Event, len(m.events))
	for i, logged := range m.events {
		events[i] = logged.Event
	}
	return events
}

// maxLogReads is the maximum number of times that one read opens the log if another program clears it.
const maxLogReads = 4

var errLogCleared = errors.New("the event log was cleared while it was read")

// Read supports the log Application, which contains the events of processes, and an empty log System. Unread events
// are lost when another program clears the log; the events since then follow.
func (l eventLog) Read(ctx context.Context, log string, each func(host.LoggedEvent) bool) error {
	if err := l.p.runOperation(ctx, "EventLog", "Read", log, func(*Machine) error {
		if log != "Application" && log != "System" {
			return fmt.Errorf("read the event log %q: %w", log, host.ErrNotExist)
		}
		return nil
	}); err != nil || log == "System" {
		return err
	}
	for range maxLogReads {
		complete, err := l.readOnce(each)
		if complete || err != nil {
			return err
		}
	}
	return fmt.Errorf("read the event log %q: %w", log, errLogCleared)
}

// readOnce reads the log until it is cleared, and reports whether the read was complete.
func (l eventLog) readOnce(each func(host.LoggedEvent) bool) (complete bool, err error) {
	var events []host.LoggedEvent
	var cleared, now int
	err = l.p.runLocked(func(m *Machine) error { events, cleared = slices.Clone(m.events), m.eventsCleared; return nil })
	for _, event := range slices.Backward(events) {
		if err != nil || !each(event) {
			return true, err
		}
		err = l.p.runLocked(func(m *Machine) error { now = m.eventsCleared; return nil })
		if err == nil && now != cleared {
			return false, nil
		}
	}
	return true, err
}

// ClearEvents clears the event log, as an administrator or another program does.
func (m *Machine) ClearEvents() {
	m.lock()
	defer m.unlock()
	m.events = nil
	m.eventsCleared++
}

// newEventSources returns representative event sources of a fresh server, by key.
func newEventSources() map[string]string {
	sources := map[string]string{}
	for _, name := range []string{"Application", "EventCreate", "VSS"} {
		sources[foldCase(name)] = name
	}
	return sources
}

func (m *Machine) eventSourceNames() []string { return slices.Sorted(maps.Values(m.eventSources)) }
