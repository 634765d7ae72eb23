package logs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestTheLinesSinceAMoment(t *testing.T) {
	modified := time.Date(2026, 3, 1, 14, 30, 2, 0, time.UTC)
	for name, test := range map[string]struct {
		log, want string
		earlier   bool
	}{
		"of the agent": {"time=2026-03-01T13:00:00.000Z level=INFO msg=a\ntime=2026-03-01T14:00:00.000Z msg=b\n",
			"time=2026-03-01T14:00:00.000Z msg=b\n", true},
		"of a program that writes JSON": {`{"level":"info","ts":"2026-03-01T16:05:00+02:00","msg":"a"}` + "\n",
			`{"level":"info","ts":"2026-03-01T16:05:00+02:00","msg":"a"}` + "\n", false},
		"of klog, on a host in UTC": {"I0301 13:00:00.000001 1 a.go:1] a\nI0301 14:30:01.000001 1 a.go:1] b\n",
			"I0301 14:30:01.000001 1 a.go:1] b\n", true},
		"of klog, on a host that is ahead": {"I0301 18:50:00.1 1 a] a\nI0301 19:50:00.1 1 a] b\nE0301 20:00:01.1 1 a] c\n",
			"I0301 19:50:00.1 1 a] b\nE0301 20:00:01.1 1 a] c\n", true},
		"of klog, on a host behind": {"I0301 05:30:00.1 1 a] a\nI0301 06:30:00.1 1 a] b\n", "I0301 06:30:00.1 1 a] b\n", true},
		"with those that belong to them": {"I0301 14:10:00.1 1 a] panic\ngoroutine 1\n\tmain.go:1\nI0301 14:30:00.1 1 a] b\n",
			"I0301 14:10:00.1 1 a] panic\ngoroutine 1\n\tmain.go:1\nI0301 14:30:00.1 1 a] b\n", false},
		"none, where all are earlier": {"time=2026-03-01T13:00:00Z msg=a\n", "", true},
		"none of an empty log":        {"", "", false},
		"a time further behind in a line is not its own": {"time=2026-03-01T13:00:00Z msg=a\n" + strings.Repeat("x", 150) +
			"2026-03-01T14:20:00Z\n", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, earlier, err := later([]byte(test.log), modified, modified.Add(-45*time.Minute))
			if err != nil || string(got) != test.want || earlier != test.earlier {
				t.Errorf("%q, %t, %v", got, earlier, err)
			}
		})
	}
	if _, _, err := later([]byte("what\n"), modified, modified); !errors.Is(err, errNoTimes) {
		t.Errorf("a log without times: %v", err)
	}
}

func TestTheYearOfALineIsTheOneBeforeItWasWritten(t *testing.T) {
	newYear := time.Date(2027, 1, 1, 0, 0, 10, 0, time.UTC)
	for line, want := range map[string]string{
		"I1231 23:59:59.1 1 a] a": "2026-12-31T23:59:59Z", "I0101 00:00:05.1 1 a] a": "2027-01-01T00:00:05Z",
		"I0101 14:00:00.1 1 a] a": "2027-01-01T14:00:00Z",
	} {
		if got, ok := localTime([]byte(line), newYear); !ok || got.Format(time.RFC3339) != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestALogIsReadBackToTheMoment(t *testing.T) {
	n := newNode(t)
	now := time.Now()
	var log strings.Builder
	for age := 5000; age > 0; age-- {
		log.WriteString("time=" + now.Add(-time.Duration(age)*time.Second).UTC().Format(time.RFC3339) + " msg=" + strings.Repeat("x", 100) + "\n")
	}
	n.write(t, "wicd/wicd.log", log.String())
	for tail, want := range map[int]int{-1: 3600, 10: 10} {
		c, out := newCommand(clocktesting.NewFakeClock(now), tail)
		c.since = time.Hour
		if err := c.print(t.Context(), n.Files, "wicd/wicd.log"); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.text(), "\n"); got < want-1 || got > want+1 {
			t.Errorf("--tail=%d: %d lines, want %d", tail, got, want)
		}
	}
	c, _ := newCommand(clock.RealClock{}, -1)
	c.since = time.Hour
	n.write(t, "odd/odd.log", "what\n")
	if err := c.print(t.Context(), n.Files, "odd/odd.log"); err == nil || !strings.Contains(err.Error(), "odd/odd.log: its lines have no time") {
		t.Error(err)
	}
}
