package disruption

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// noon is a Saturday.
var noon = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

func mustParseWindow(t interface{ Fatal(...any) }, schedule string, d time.Duration, zone string) Window {
	w, err := parseWindow(v1alpha1.MaintenanceWindow{Schedule: schedule, Duration: metav1.Duration{Duration: d},
		TimeZone: zone})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func mustParseTime(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestMaintenanceWindows(t *testing.T) {
	for name, test := range map[string]struct {
		schedule string
		duration time.Duration
		zone     string
		open     []string // times inside the window
		shut     []string // times outside the window
		next     [2]string
	}{
		"a window is open from its minute on, until it ends": {schedule: "0 2 * * SAT", duration: 4 * time.Hour,
			open: []string{"2026-11-21T02:00:00Z", "2026-11-21T05:59:59Z"}, shut: []string{"2026-11-21T01:59:59Z", "2026-11-21T06:00:00Z", "2026-11-22T03:00:00Z"},
			next: [2]string{"2026-11-21T06:00:00Z", "2026-11-28T02:00:00Z"}},
		"a window may go over midnight": {schedule: "0 22 * * FRI", duration: 4 * time.Hour,
			open: []string{"2026-11-20T23:59:00Z", "2026-11-21T00:00:00Z", "2026-11-21T01:59:00Z"}, shut: []string{"2026-11-21T02:00:00Z", "2026-11-20T21:59:00Z"},
			next: [2]string{"2026-11-21T02:00:00Z", "2026-11-27T22:00:00Z"}},
		"a window may go over midnight of the new year": {schedule: "0 23 31 12 *", duration: 2 * time.Hour,
			open: []string{"2027-01-01T00:30:00Z"}, shut: []string{"2027-01-01T01:00:00Z"}, next: [2]string{"2027-01-01T01:00:00Z", "2027-12-31T23:00:00Z"}},
		"a window longer than its period is always open": {schedule: "0 * * * *", duration: 90 * time.Minute,
			open: []string{"2026-11-21T02:00:00Z", "2026-11-21T02:59:59Z", "2026-11-21T03:29:00Z"}, next: [2]string{"2026-11-21T02:00:00Z", "2026-11-21T03:00:00Z"}},
		"a window as long as its period is always open": {schedule: "0 0 * * *", duration: 24 * time.Hour,
			open: []string{"2026-11-21T00:00:00Z", "2026-11-21T23:59:59Z"}, next: [2]string{"2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"}},
		"a window keeps the time of its zone in winter and summer": {schedule: "0 2 * * *", duration: time.Hour, zone: "Europe/Paris",
			open: []string{"2026-01-10T01:00:00Z", "2026-07-10T00:00:00Z"}, shut: []string{"2026-01-10T00:59:00Z", "2026-01-10T02:00:00Z", "2026-07-10T01:00:00Z"},
			next: [2]string{"2026-07-10T00:00:00Z", "2026-07-11T00:00:00Z"}},
		"a window that the clock leaves out in spring opens when it is put forward": {schedule: "30 2 * * *", duration: time.Hour, zone: "Europe/Paris",
			open: []string{"2026-03-29T01:00:00Z", "2026-03-29T01:59:00Z"}, shut: []string{"2026-03-29T00:59:59Z", "2026-03-29T02:00:00Z"},
			next: [2]string{"2026-03-28T03:00:00Z", "2026-03-29T01:00:00Z"}},
		"a window that the clock leaves out on the other side of the sea does as well": {schedule: "30 2 * * *", duration: time.Hour, zone: "America/New_York",
			open: []string{"2026-03-08T07:00:00Z"}, shut: []string{"2026-03-08T06:59:59Z", "2026-03-08T08:00:00Z"},
			next: [2]string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		"a window that the clock passes twice in autumn opens once": {schedule: "30 2 * * *", duration: time.Hour, zone: "Europe/Paris",
			open: []string{"2026-10-25T00:30:00Z", "2026-10-25T01:29:00Z"}, shut: []string{"2026-10-25T01:30:00Z"},
			next: [2]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"a window over the night in which the clock is put back lasts as long as ever": {schedule: "0 1 * * SUN", duration: 3 * time.Hour, zone: "America/New_York",
			open: []string{"2026-11-01T05:00:00Z", "2026-11-01T07:59:00Z"}, shut: []string{"2026-11-01T08:00:00Z"}, next: [2]string{"2026-11-01T05:00:00Z", "2026-11-08T06:00:00Z"}},
		"a window at a midnight that does not exist opens at one": {schedule: "0 0 * * *", duration: time.Hour, zone: "America/Sao_Paulo",
			open: []string{"2018-11-04T03:00:00Z"}, shut: []string{"2018-11-04T02:59:00Z"}, next: [2]string{"2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z"}},
		"a window on a day that does not exist opens after it": {schedule: "0 12 30 12 *", duration: time.Hour, zone: "Pacific/Apia",
			open: []string{"2011-12-30T10:00:00Z"}, next: [2]string{"2011-12-01T00:00:00Z", "2011-12-30T10:00:00Z"}},
		"a window on the leap day waits for it": {schedule: "0 0 29 2 *", duration: time.Hour,
			shut: []string{"2027-02-28T00:00:00Z", "2027-03-01T00:00:00Z"}, next: [2]string{"2026-11-21T00:00:00Z", "2028-02-29T00:00:00Z"}},
		"a window in a zone of half hours is not off by one": {schedule: "15 4 * * *", duration: 30 * time.Minute, zone: "Asia/Kolkata",
			open: []string{"2026-11-20T22:45:00Z"}, shut: []string{"2026-11-20T22:44:00Z", "2026-11-20T23:15:00Z"}, next: [2]string{"2026-11-20T22:45:00Z", "2026-11-21T22:45:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustParseWindow(t, test.schedule, test.duration, test.zone)
			for _, moment := range test.open {
				if !w.isOpen(mustParseTime(t, moment)) {
					t.Errorf("it is shut at %s", moment)
				}
			}
			for _, moment := range test.shut {
				if w.isOpen(mustParseTime(t, moment)) {
					t.Errorf("it is open at %s", moment)
				}
			}
			if got := w.nextOpening(mustParseTime(t, test.next[0])); !got.Equal(mustParseTime(t, test.next[1])) {
				t.Errorf("after %s it opens next at %s, want %s", test.next[0], got.UTC(), test.next[1])
			}
		})
	}
	t.Run("of two windows the one that opens first is named", func(t *testing.T) {
		s := Settings{Windows: []Window{mustParseWindow(t, "0 2 * * MON", time.Hour, ""), mustParseWindow(t, "0 13 * * *", time.Hour, "")}}
		open, next, w := s.NextWindow(noon)
		if open || !next.Equal(noon.Add(time.Hour)) || w.Text != s.Windows[1].Text {
			t.Errorf("got %v %s %s", open, next, w.Text)
		}
		if open, _, _ := s.NextWindow(next); !open {
			t.Error("it is shut when it was to open")
		}
	})
}

// In any zone and year, a window opens at the announced time and not before, and stays open for its duration.
func TestMaintenanceWindows_OpenAtAnnouncedTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"", "Europe/Paris", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe",
			"Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca"}).Draw(t, "zone")
		schedule := rapid.SampledFrom([]string{"*/7 * * * *", "30 2 * * *", "0 0 * * SUN", "59 23 * * *", "0 */5 1,15 * *",
			"30 1 * 3,4,10,11 *", "0 2 28-31 * MON"}).Draw(t, "schedule")
		duration := time.Duration(rapid.IntRange(1, 3000).Draw(t, "minutes")) * time.Minute
		w := mustParseWindow(t, schedule, duration, zone)
		now := time.Date(2005, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 25*366*24*60).Draw(t,
			"now")) * time.Minute)
		next := w.nextOpening(now)
		if !next.After(now) {
			t.Fatalf("after %s it opens at %s", now, next)
		}
		if !w.isOpen(next) || !w.isOpen(next.Add(duration-time.Second)) {
			t.Fatalf("it opens at %s, and is shut", next)
		}
		if between := now.Add(next.Sub(now) / 2); !w.nextOpening(between).Equal(next) {
			t.Fatalf("after %s it opens at %s, after %s at %s", now, next, between, w.nextOpening(between))
		}
		if before := next.Add(-time.Second); !w.isOpen(now) && before.After(now) && w.isOpen(before) {
			t.Fatalf("shut at %s, it is open at %s", now, before)
		}
	})
}
