package hosttest

import (
	"context"
	"slices"
	"strconv"

	"github.com/windows-machine-config/wmco/internal/host"
)

// addEventSource adds the suite's event source until the end of the behavior.
func (s *suite) addEventSource() {
	s.atEnd(func(ctx context.Context) error { return s.EventLog.RemoveSource(ctx, eventSource) })
	s.requireNoError(s.EventLog.AddSource(s.ctx, eventSource))
}

func (s *suite) hasEventSource() bool {
	known, err := s.EventLog.HasSource(s.ctx, eventSource)
	s.requireNoError(err)
	return known
}

// readEvents returns the events of the suite's source in a log, the newest first.
func (s *suite) readEvents(log string) (events []host.Event) {
	s.requireNoError(s.EventLog.Read(s.ctx, log, func(read host.LoggedEvent) bool {
		if read.Source == eventSource {
			events = append(events, read.Event)
		}
		return true
	}))
	return events
}

func eventLogBehaviors() []Behavior {
	event := host.Event{Source: eventSource, Level: host.EventWarning, ID: 7, Message: "The contract suite says:\nGrüße"}
	return []Behavior{
		{"EventLog.HasSource", "a source that was not added is unknown", func(s *suite) {
			expectEqual(s, "known", s.hasEventSource(), false)
		}},
		{"EventLog.AddSource", "an added source is known, and adding it again is no error", func(s *suite) {
			s.addEventSource()
			s.addEventSource()
			expectEqual(s, "known", s.hasEventSource(), true)
		}},
		{"EventLog.RemoveSource", "a removed source is unknown, and removing it again is no error", func(s *suite) {
			s.addEventSource()
			for range 2 {
				s.requireNoError(s.EventLog.RemoveSource(s.ctx, eventSource))
				expectEqual(s, "known", s.hasEventSource(), false)
			}
		}},
		{"EventLog.Report", "an event is accepted from a known and from an unknown source", func(s *suite) {
			s.requireNoError(s.EventLog.Report(s.ctx, event))
			s.addEventSource()
			for _, level := range []host.EventLevel{host.EventInformation, host.EventWarning, host.EventError} {
				event.Level = level
				s.requireNoError(s.EventLog.Report(s.ctx, event))
			}
		}},
		{"EventLog.Report", "an invalid event is rejected", func(s *suite) {
			noSource, noLevel, noID := event, event, event
			noSource.Source, noLevel.Level, noID.ID = "", "Fatal", 1001
			for _, bad := range []host.Event{noSource, noLevel, noID} {
				s.expectAnyError("reporting it", s.EventLog.Report(s.ctx, bad))
			}
		}},
		{"EventLog.Read", "a reported event is in the log, and newer events precede it", func(s *suite) {
			s.addEventSource()
			later := event
			later.ID = 8
			s.requireNoError(s.EventLog.Report(s.ctx, event))
			s.requireNoError(s.EventLog.Report(s.ctx, later))
			s.waitUntil("the events are in the log", func() bool {
				read := s.readEvents("Application")
				at := slices.Index(read, later)
				return at >= 0 && slices.Contains(read[at:], event)
			})
		}},
		{"EventLog.Read", "reading continues with the new events after the log was cleared", func(s *suite) { readClearedLog(s, event) }},
		{"EventLog.Read", "reading a repeatedly cleared log fails", func(s *suite) { readLogThatIsAlwaysCleared(s, event) }},
		{"EventLog.Read", "reading stops when the caller needs no more events", func(s *suite) {
			s.addEventSource()
			for range 3 {
				s.requireNoError(s.EventLog.Report(s.ctx, event))
			}
			read := 0
			s.requireNoError(s.EventLog.Read(s.ctx, "Application", func(host.LoggedEvent) bool { read++; return read < 2 }))
			expectEqual(s, "events", read, 2)
		}},
	}
}

func readClearedLog(s *suite, event host.Event) {
	if s.machine.ClearLog == nil {
		s.skipBehavior("the suite must not clear an event log in this environment")
	}
	s.addEventSource()
	for range 5 {
		s.requireNoError(s.EventLog.Report(s.ctx, event))
	}
	since := event
	since.ID = 9
	read := map[uint32]int{}
	s.requireNoError(s.EventLog.Read(s.ctx, "Application", func(logged host.LoggedEvent) bool {
		if logged.Source == eventSource {
			read[logged.ID]++
		}
		if len(read) == 1 && read[event.ID] == 1 {
			s.requireNoError(s.machine.ClearLog("Application"))
			s.requireNoError(s.EventLog.Report(s.ctx, since))
		}
		return true
	}))
	expectEqual(s, "new events", read[since.ID], 1)
	expectEqual(s, "earlier events are read, none twice", read[event.ID] >= 1 && read[event.ID] <= 5, true)
}

func readLogThatIsAlwaysCleared(s *suite, event host.Event) {
	if s.machine.ClearLog == nil {
		s.skipBehavior("the suite must not clear an event log in this environment")
	}
	s.addEventSource()
	reported := 0
	clearLog := func() {
		s.requireNoError(s.machine.ClearLog("Application"))
		for range 5 {
			reported++
			other := event
			other.Message = strconv.Itoa(reported)
			s.requireNoError(s.EventLog.Report(s.ctx, other))
		}
	}
	clearLog()
	s.expectAnyError("reading it", s.EventLog.Read(s.ctx, "Application", func(host.LoggedEvent) bool { clearLog(); return true }))
}
