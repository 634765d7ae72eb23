package disruption

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// Window is a recurring time.
type Window struct {
	// Text is how an administrator wrote it.
	Text string
	// schedule runs on the wall clock, which it sees as a clock in UTC: it knows nothing of summer time.
	schedule cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// longAgo is where the search for a schedule's first time begins. The five years after it have a 29th of February.
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
			"write how long the window is open, as in 4h")
	}
	text := fmt.Sprintf("%q for %s, %s", spec.Schedule, policy.ShortDuration(spec.Duration.Duration), zone)
	return Window{Text: text, schedule: schedule, duration: spec.Duration.Duration, zone: zone}, nil
}

func parseZone(name string) (*time.Location, error) {
	const remedy = "write a name of the time zone database, as in Europe/Paris, or leave it out for UTC"
	if name == "Local" { // the zone of the operator's own host, which no administrator knows
		return nil, fieldError("timeZone", name, "is no time zone", remedy)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fieldError("timeZone", name, "is no time zone that the operator knows", remedy)
	}
	return zone, nil
}

func parseSchedule(text string) (cron.Schedule, error) {
	const remedy = `write minute, hour, day of the month, month and day of the week (0 to 6, 0 is Sunday), as in "0 2 * * SAT"`
	if strings.ContainsRune(text, '=') { // a TZ= in front, which the cron package knows, and on which it panics when nothing follows
		return nil, fieldError("schedule", text, "has another thing in it than five fields",
			remedy+", and the time zone in timeZone")
	}
	schedule, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
	if err != nil {
		return nil, fieldError("schedule", text, "is not five fields of cron ("+err.Error()+")", remedy)
	}
	if schedule.Next(longAgo).IsZero() {
		return nil, fieldError("schedule", text, "names a day that never comes", remedy)
	}
	return schedule, nil
}

// open reports whether the window is open. It is from each time of the schedule on, for its duration as a clock runs
// that nobody sets.
func (w Window) open(now time.Time) bool {
	begins := w.nextOpening(now.Add(-w.duration))
	return !begins.IsZero() && !begins.After(now)
}

// nextOpening returns the first time after another at which the window opens, zero when there is none within years.
//
// A time of the wall clock that is left out when the clock is put forward is the moment in which it is put forward; one
// that comes twice when the clock is put back is the first of the two.
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

// momentOf is when the wall clock of a zone shows this time first, or is put forward past it.
func momentOf(wall time.Time, zone *time.Location) time.Time {
	shows := func(t time.Time) bool {
		return t.Year() == wall.Year() && t.YearDay() == wall.YearDay() && t.Hour() == wall.Hour() &&
			t.Minute() == wall.Minute() && t.Second() == wall.Second()
	}
	guess := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	begin, end := guess.ZoneBounds()
	if !shows(guess) { // left out: guess is on one side of the moment in which the clock is put forward
		_, offset := guess.Zone()
		if shown := wall.Add(-time.Duration(offset) * time.Second); !end.IsZero() && !shown.Before(end) {
			return end
		}
		return begin
	}
	if begin.IsZero() {
		return guess
	}
	// The zone before has another offset from UTC: with that, the same time may have been shown already.
	_, offset := begin.Add(-time.Second).In(zone).Zone()
	if earlier := wall.Add(-time.Duration(offset) * time.Second).In(zone); earlier.Before(begin) && shows(earlier) {
		return earlier
	}
	return guess
}

// NextWindow reports whether a window is open, and if not, when the next one opens; the time is zero when none does
// within years.
func (s Settings) NextWindow(now time.Time) (open bool, next time.Time, window Window) {
	if len(s.Windows) == 0 {
		return true, time.Time{}, Window{}
	}
	for _, w := range s.Windows {
		if w.open(now) {
			return true, time.Time{}, w
		}
		if begins := w.nextOpening(now); !begins.IsZero() && (next.IsZero() || begins.Before(next)) {
			next, window = begins, w
		}
	}
	return false, next, window
}

// fieldError says of a field what is wrong with its value, and what to do.
func fieldError(field string, value any, wrong, remedy string) error {
	if s, ok := value.(string); ok {
		value = fmt.Sprintf("%q", s)
	}
	return fmt.Errorf("%s: %v %s: %s", field, value, wrong, remedy)
}
