package soak

import (
	"strings"
	"testing"
	"time"
)

func TestDocument_ShowsGrowingMeasures(t *testing.T) {
	days := newMonth(Heap, func(int) float64 { return 0 })
	for i, day := range days {
		day[Goroutines] = 1000 + float64(i)
		day[objectsOf+"Node"], day[objectsOf+"Job.batch"] = 6, float64(i)
	}
	verdicts, err := Judge(days, tenDayCycle)
	if err != nil {
		t.Fatal(err)
	}
	text := Document(Report{Days: days, Verdicts: verdicts, Elapsed: 40*time.Minute + time.Second, Done: map[Action]int{RestartAPI: 3}})
	for _, want := range []string{
		"`make soak DAYS=30`", "which took 40m0s", "| measure | day 10 | day 20 | day 30 | growth | limit |",
		"| **goroutines** | 1009 | 1019 | 1029 | 10 | 7.8 |", "| 0 | 2.6 |",
		"| **API objects of kind Job.batch** | 9 | 19 | 29 | 10 | 0 |", "the 2 kinds", "| 3 | the control plane restarts |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("without %q:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if len(line) > maxColumns+1 && !strings.HasPrefix(line, "|") {
			t.Errorf("a line has more than %d columns: %s", maxColumns, line)
		}
	}
	if strings.Contains(text, "kind Node") {
		t.Errorf("a kind that does not grow has a line:\n%s", text)
	}
}
