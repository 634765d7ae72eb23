package logprinter

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestLinesSince(t *testing.T) {
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
			got, earlier, err := linesSince([]byte(test.log), modified, modified.Add(-45*time.Minute))
			if err != nil || string(got) != test.want || earlier != test.earlier {
				t.Errorf("%q, %t, %v", got, earlier, err)
			}
		})
	}
	if _, _, err := linesSince([]byte("what\n"), modified, modified); !errors.Is(err, errNoTimes) {
		t.Errorf("a log without times: %v", err)
	}
}

func TestLocalTime_YearNotAfterModification(t *testing.T) {
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
