package disruption

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// Window is a recurring maintenance window.
type Window struct {
	// Text is the window as written by an administrator.
	Text string
	// schedule runs on wall clock times represented in UTC and thus ignores daylight saving time.
	schedule cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// longAgo is the start of the search for a schedule's first time. The following five years include a 29th of
// February.
var longAgo = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

func parseWindow(spec v1alpha1.MaintenanceWindow) (Window, error) {
	zone, err := parseZone(spec.TimeZone)
	if err != nil {
		return Window{}, err
	}
	schedule, err := parseSchedule(spec.Schedule)
	if err != nil {
		return Window{}, err
	}
	if spec.Duration.Duration < time.Minute {
		return Window{}, fieldError("duration", spec.Duration.Duration, "is shorter than a minute",
			"use a duration such as 4h")
	}
	text := fmt.Sprintf("%q for %s, %s", spec.Schedule, policy.ShortDuration(spec.Duration.Duration), zone)
	return Window{Text: text, schedule: schedule, duration: spec.Duration.Duration, zone: zone}, nil
}

func parseZone(name string) (*time.Location, error) {
	const remedy = "use a name of the time zone database such as Europe/Paris, or omit it for UTC"
	if name == "Local" { // the zone of the operator's host, unknown to administrators
		return nil, fieldError("timeZone", name, "is not a time zone", remedy)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fieldError("timeZone", name, "is not a known time zone", remedy)
	}
	return zone, nil
}

func parseSchedule(text string) (cron.Schedule, error) {
	const remedy = `use minute, hour, day of the month, month and day of the week (0 to 6, 0 is Sunday), such as "0 2 * * SAT"`
	if strings.ContainsRune(text, '=') { // a TZ= prefix: the cron package accepts it, and panics if nothing follows
		return nil, fieldError("schedule", text, "contains a time zone",
			remedy+", and the time zone in timeZone")
	}
	schedule, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
	if err != nil {
		return nil, fieldError("schedule", text, "is not a cron schedule with five fields ("+err.Error()+")", remedy)
	}
	if schedule.Next(longAgo).IsZero() {
		return nil, fieldError("schedule", text, "contains a date that does not exist", remedy)
	}
	return schedule, nil
}

// isOpen reports whether the window is open. A window opens at each time of the schedule and stays open for its
// duration in elapsed time, regardless of clock changes.
func (w Window) isOpen(now time.Time) bool {
	begins := w.nextOpening(now.Add(-w.duration))
	return !begins.IsZero() && !begins.After(now)
}

// nextOpening returns the time of the next opening after the given time, or zero if there is none within years.
//
// A wall clock time that is skipped when the clock is set forward maps to the moment of that change. A wall clock
// time that occurs twice when the clock is set back maps to its first occurrence.
func (w Window) nextOpening(after time.Time) time.Time {
	local := after.In(w.zone)
	wall := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), 0, time.UTC)
	for {
		if wall = w.schedule.Next(wall); wall.IsZero() {
			return time.Time{}
		}
		if at := momentOf(wall, w.zone); at.After(after) {
			return at
		}
	}
}

// momentOf returns the first moment when the wall clock of a zone shows this time or skips it.
func momentOf(wall time.Time, zone *time.Location) time.Time {
	shows := func(t time.Time) bool {
		return t.Year() == wall.Year() && t.YearDay() == wall.YearDay() && t.Hour() == wall.Hour() &&
			t.Minute() == wall.Minute() && t.Second() == wall.Second()
	}
	guess := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	begin, end := guess.ZoneBounds()
	if !shows(guess) { // skipped: guess is before or after the moment when the clock is set forward
		_, offset := guess.Zone()
		if shown := wall.Add(-time.Duration(offset) * time.Second); !end.IsZero() && !shown.Before(end) {
			return end
		}
		return begin
	}
	if begin.IsZero() {
		return guess
	}
	// The previous offset from UTC differs: with that offset, the clock may have shown the same time already.
	_, offset := begin.Add(-time.Second).In(zone).Zone()
	if earlier := wall.Add(-time.Duration(offset) * time.Second).In(zone); earlier.Before(begin) && shows(earlier) {
		return earlier
	}
	return guess
}

// NextWindow reports whether a window is open and, if not, the time of the next opening. The time is zero if no
// window opens within years.
func (s Settings) NextWindow(now time.Time) (open bool, next time.Time, window Window) {
	if len(s.Windows) == 0 {
		return true, time.Time{}, Window{}
	}
	for _, w := range s.Windows {
		if w.isOpen(now) {
			return true, time.Time{}, w
		}
		if begins := w.nextOpening(now); !begins.IsZero() && (next.IsZero() || begins.Before(next)) {
			next, window = begins, w
		}
	}
	return false, next, window
}

// fieldError returns an error with the field, its value, the fault and the remedy.
func fieldError(field string, value any, wrong, remedy string) error {
	if s, ok := value.(string); ok {
		value = fmt.Sprintf("%q", s)
	}
	return fmt.Errorf("%s: %v %s: %s", field, value, wrong, remedy)
}
