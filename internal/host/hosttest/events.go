package hosttest

import (
	"context"
	"slices"
	"strconv"

	"github.com/windows-machine-config/wmco/internal/host"
)

// source adds the suite's event source until the end of the behavior.
func (s *suite) source() {
	s.atEnd(func(ctx context.Context) error { return s.EventLog.RemoveSource(ctx, eventSource) })
	s.must(s.EventLog.AddSource(s.ctx, eventSource))
}

func (s *suite) known() bool {
	known, err := s.EventLog.KnowsSource(s.ctx, eventSource)
	s.must(err)
	return known
}

// logged returns the events of the suite's source in a log, the newest first.
func (s *suite) logged(log string) (events []host.Event) {
	s.must(s.EventLog.Read(s.ctx, log, func(read host.LoggedEvent) bool {
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
		{"EventLog.KnowsSource", "a source that nobody has added is not known", func(s *suite) {
			is(s, "known", s.known(), false)
		}},
		{"EventLog.AddSource", "an added source is known, and adding it again is no error", func(s *suite) {
			s.source()
			s.source()
			is(s, "known", s.known(), true)
		}},
		{"EventLog.RemoveSource", "a removed source is not known, and removing it again is no error", func(s *suite) {
			s.source()
			for range 2 {
				s.must(s.EventLog.RemoveSource(s.ctx, eventSource))
				is(s, "known", s.known(), false)
			}
		}},
		{"EventLog.Report", "an event is taken from a source that is known and from one that is not", func(s *suite) {
			s.must(s.EventLog.Report(s.ctx, event))
			s.source()
			for _, level := range []host.EventLevel{host.EventInformation, host.EventWarning, host.EventError} {
				event.Level = level
				s.must(s.EventLog.Report(s.ctx, event))
			}
		}},
		{"EventLog.Report", "an event that no log can show is refused", func(s *suite) {
			noSource, noLevel, noID := event, event, event
			noSource.Source, noLevel.Level, noID.ID = "", "Fatal", 1001
			for _, bad := range []host.Event{noSource, noLevel, noID} {
				s.refused("reporting it", s.EventLog.Report(s.ctx, bad))
			}
		}},
		{"EventLog.Read", "a reported event is in the log as it was reported, behind those that were reported later", func(s *suite) {
			s.source()
			later := event
			later.ID = 8
			s.must(s.EventLog.Report(s.ctx, event))
			s.must(s.EventLog.Report(s.ctx, later))
			s.eventually("the events are in the log", func() bool {
				read := s.logged("Application")
				at := slices.Index(read, later)
				return at >= 0 && slices.Contains(read[at:], event)
			})
		}},
		{"EventLog.Read", "a log that is cleared meanwhile is read on, with the events since then", func(s *suite) { readClearedLog(s, event) }},
		{"EventLog.Read", "a log that is cleared again and again is an error", func(s *suite) { readLogThatIsAlwaysCleared(s, event) }},
		{"EventLog.Read", "no more events are read than are wanted", func(s *suite) {
			s.source()
			for range 3 {
				s.must(s.EventLog.Report(s.ctx, event))
			}
			read := 0
			s.must(s.EventLog.Read(s.ctx, "Application", func(host.LoggedEvent) bool { read++; return read < 2 }))
			is(s, "events", read, 2)
		}},
	}
}

func readClearedLog(s *suite, event host.Event) {
	if s.machine.ClearLog == nil {
		s.notHere("the suite must not clear an event log here")
	}
	s.source()
	for range 5 {
		s.must(s.EventLog.Report(s.ctx, event))
	}
	since := event
	since.ID = 9
	read := map[uint32]int{}
	s.must(s.EventLog.Read(s.ctx, "Application", func(logged host.LoggedEvent) bool {
		if logged.Source == eventSource {
			read[logged.ID]++
		}
		if len(read) == 1 && read[event.ID] == 1 {
			s.must(s.machine.ClearLog("Application"))
			s.must(s.EventLog.Report(s.ctx, since))
		}
		return true
	}))
	is(s, "events since then", read[since.ID], 1)
	is(s, "some of those before are read, and none twice", read[event.ID] >= 1 && read[event.ID] <= 5, true)
}

func readLogThatIsAlwaysCleared(s *suite, event host.Event) {
	if s.machine.ClearLog == nil {
		s.notHere("the suite must not clear an event log here")
	}
	s.source()
	reported := 0
	clearLog := func() {
		s.must(s.machine.ClearLog("Application"))
		for range 5 {
			reported++
			other := event
			other.Message = strconv.Itoa(reported)
			s.must(s.EventLog.Report(s.ctx, other))
		}
	}
	clearLog()
	s.refused("reading it", s.EventLog.Read(s.ctx, "Application", func(host.LoggedEvent) bool { clearLog(); return true }))
}
