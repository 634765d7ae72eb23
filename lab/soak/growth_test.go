package soak

import (
	"slices"
	"testing"
)

const tenDayCycle = 10

// newMonth returns the values of a month: the usual values of the days of a cycle, a little noise, and the growth.
func newMonth(measure string, grown func(day int) float64) []Day {
	usual := []float64{60, 61, 60, 64, 60, 70, 61, 60, 64, 62}
	days := make([]Day, 3*tenDayCycle)
	for i := range days {
		noise := float64((i*7)%5-2) / 10 * measureOf(measure).Noise // -20 to 20 percent of the allowed noise
		days[i] = Day{measure: usual[i%len(usual)] + noise + grown(i)}
	}
	return days
}

func judgeMeasure(t *testing.T, days []Day, measure string) Verdict {
	t.Helper()
	verdicts, err := Judge(days, tenDayCycle)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Name == measure })
	if at < 0 {
		t.Fatalf("nothing is said of %s: %v", measure, verdicts)
	}
	return verdicts[at]
}

func TestJudge_LeakOfEachMeasureDetected(t *testing.T) {
	kinds := []string{objectsOf + "ConfigMap"}
	for _, m := range measures {
		kinds = append(kinds, m.Name)
	}
	for _, name := range kinds {
		m := measureOf(name)
		t.Run(name+" does not grow: no day is like the other", func(t *testing.T) {
			if v := judgeMeasure(t, newMonth(name, func(int) float64 { return 0 }), name); v.HasGrown() {
				t.Error(v)
			}
		})
		t.Run(name+" grows a little each day", func(t *testing.T) {
			// Counts grow by at least one; sizes grow in ten days by a little more than the noise.
			daily := m.Noise/tenDayCycle*1.6 + 60*m.Share/tenDayCycle*3 + 0.2
			if v := judgeMeasure(t, newMonth(name, func(day int) float64 { return daily * float64(day) }), name); !v.HasGrown() {
				t.Error(v)
			}
		})
	}
}

func TestJudge_OneObjectPerDayIsLeak(t *testing.T) {
	oneADay := func(day int) float64 { return float64(day) }
	for _, name := range []string{Goroutines, OpenFiles, Objects, Series, HostFiles, objectsOf + "Lease"} {
		if v := judgeMeasure(t, newMonth(name, oneADay), name); !v.HasGrown() {
			t.Errorf("one a day is left: %s", v)
		}
	}
	oneACycle := func(day int) float64 { return float64((day + 5) / tenDayCycle) } // in the middle of a cycle
	for _, name := range []string{Objects, objectsOf + "Lease"} {
		if v := judgeMeasure(t, newMonth(name, oneACycle), name); !v.HasGrown() {
			t.Errorf("one is left in ten days: %s", v)
		}
	}
}

func TestJudge_TemporaryGrowthIsNotLeak(t *testing.T) {
	for name, grown := range map[string]func(day int) float64{
		"the days of warming up": func(day int) float64 { return -max(0, 20-2*float64(day)) },
		"a machine that is busy for three days": func(day int) float64 {
			if day >= 22 && day < 25 {
				return 500
			}
			return 0
		},
		"less from day to day": func(day int) float64 { return -float64(day) },
	} {
		t.Run(name, func(t *testing.T) {
			if v := judgeMeasure(t, newMonth(Goroutines, grown), Goroutines); v.HasGrown() {
				t.Error(v)
			}
		})
	}
}

func TestJudge_KindThatAppearsLateHasGrown(t *testing.T) {
	days := newMonth(Heap, func(int) float64 { return 0 })
	for i, day := range days {
		if i >= 20 {
			day[objectsOf+"Job.batch"] = 1
		}
	}
	if v := judgeMeasure(t, days, objectsOf+"Job.batch"); !v.HasGrown() || v.Before != 0 || v.Last != 1 {
		t.Error(v)
	}
	verdicts, err := Judge(days, tenDayCycle)
	if grown := Grown(verdicts); err != nil || len(grown) != 1 || grown[0].Name != objectsOf+"Job.batch" {
		t.Errorf("%v, %v", grown, err)
	}
}

func TestJudge_TooFewDaysRejected(t *testing.T) {
	for _, cycle := range []int{0, 16} {
		if verdicts, err := Judge(newMonth(Heap, func(int) float64 { return 0 }), cycle); err == nil {
			t.Errorf("30 days in cycles of %d: %v", cycle, verdicts)
		}
	}
}
