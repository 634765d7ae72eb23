package hosttest

import (
	"context"
	"slices"

	"github.com/windows-machine-config/wmco/internal/host"
)

// source makes the suite's source known and makes Windows forget it at the end.
func (s *suite) source() {
	s.atEnd(func(ctx context.Context) error { return s.EventLog.RemoveSource(ctx, eventSource) })
	s.must(s.EventLog.AddSource(s.ctx, eventSource))
}

func (s *suite) known() bool {
	known, err := s.EventLog.KnowsSource(s.ctx, eventSource)
	s.must(err)
	return known
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
		{"EventLog.Report", "a reported event is in the log as it was reported", func(s *suite) {
			if s.machine.Events == nil {
				s.notHere("the suite cannot read the event log here")
			}
			s.source()
			s.must(s.EventLog.Report(s.ctx, event))
			s.eventually("the event is in the log", func() bool {
				events, err := s.machine.Events(s.ctx, eventSource)
				s.must(err)
				return slices.Contains(events, event)
			})
		}},
	}
}
