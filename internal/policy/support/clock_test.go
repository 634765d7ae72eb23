package support

import (
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestSupportClock(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for sentence, c := range map[string]struct {
		host     time.Duration // since the operator's request
		duration time.Duration
		refused  bool
		advice   string // "": none
	}{
		"a clock that is right":                                    {duration: time.Second},
		"a clock that was read in the middle of a slow call":       {host: 4 * time.Minute, duration: 8 * time.Minute},
		"a minute ahead is nothing to speak of":                    {host: time.Minute},
		"more than a minute ahead is advice":                       {host: 90 * time.Second, advice: "1m30s ahead"},
		"more than a minute behind is advice":                      {host: -90 * time.Second, advice: "1m30s behind"},
		"five minutes behind, new certificates are valid":          {host: -5 * time.Minute, advice: "5m behind"},
		"a clock further behind sees no valid certificate":         {host: -5*time.Minute - time.Second, refused: true, advice: "5m1s behind"},
		"a clock that shows local time, to the east":               {host: 2 * time.Hour, duration: time.Second, refused: true, advice: "1h59m59s ahead"},
		"a clock that shows local time, to the west":               {host: -5 * time.Hour, refused: true, advice: "5h behind"},
		"a clock that is a year ahead":                             {host: 365 * 24 * time.Hour, refused: true, advice: "365 days ahead"},
		"a clock that was never set":                               {host: -20000 * 24 * time.Hour, refused: true, advice: "20000 days behind"},
		"a clock centuries ahead, further than a duration can say": {host: 1<<63 - 1, refused: true, advice: "106751 days ahead"},
	} {
		t.Run(sentence, func(t *testing.T) {
			reading := ClockReading{Host: noon.Add(c.host), RequestedAt: noon, RespondedAt: noon.Add(c.duration)}
			decision := SupportClock(reading)
			if decision.Allowed == c.refused || c.refused && decision.Reason != v1alpha1.ReasonClockSkew {
				t.Errorf("%+v", decision)
			}
			advice := ClockAdvice(reading)
			if (advice != "") != (c.advice != "") || !strings.Contains(advice, c.advice) {
				t.Errorf("advice %q, want %q", advice, c.advice)
			}
			if c.refused && (!strings.Contains(decision.Message, reading.Host.Format("2006-01-02 15:04:05 UTC")) ||
				!strings.Contains(decision.Message, " and the operator's 2026-11-21 12:0")) {
				t.Errorf("both times must be in %q", decision.Message)
			}
		})
	}
	if SupportClock(ClockReading{}).Allowed != true || ClockAdvice(ClockReading{}) != "" {
		t.Error("a host that does not report its time is not refused for it")
	}
}
