package bench

import (
	"strings"
	"testing"
	"time"
)

func reported() Result {
	r := good()
	r.Machine = Machine{CPU: "Example CPU 3000", Cores: 2, GoVersion: "go1.26", System: "linux/amd64", Load: "0.50", Day: "2026-01-31"}
	r.Parts = map[Part]Machine{PartJoins: r.Machine}
	r.Quiets[2].WriteKinds = map[string]int{"patch nodes": 1, "patch windowsinstances/status": 2}
	r.Lines = Evaluate(r)
	return r
}

func TestReport(t *testing.T) {
	t.Run("machine, verdicts and ratio are reported", func(t *testing.T) {
		text := Markdown(reported())
		for _, want := range []string{
			"Example CPU 3000, 2 cores, linux/amd64, go1.26.", "joins 0.50 (2026-01-31).", "| 1000 | 14.9 s |", "| 100 | upgrade |",
			"| first configuration, worst host of all runs | execs | 8 | ≤ 8 | kept |",
			"| 50 | 0 ms | 59.9 s |", "| 1 | 50 ms | 12.8 s |", "| together |  | 308.9 s |",
			"3; 1 × patch nodes; 2 × patch windowsinstances/status |",
			"packed (22.2 %)", "| 50 ms | 30.00 s | 0.50 s | 1.50 s | 15.0 |", "## What is not measured",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the report does not say %q:\n%s", want, text)
			}
		}
	})
	t.Run("what is over its budget stands out", func(t *testing.T) {
		r := reported()
		r.Joins[0].Worst.Execs, r.Joins[0].Seconds = 9, 4
		r.Lines = Evaluate(r)
		if text := Markdown(r); !strings.Contains(text, "| 9 | ≤ 8 | **OVER** |") ||
			!strings.Contains(text, "| 4.0 s | < 3 s | **slow** |") {
			t.Error(text)
		}
	})
	t.Run("every row of a table has as many cells as its head", func(t *testing.T) {
		cells := 0
		for line := range strings.Lines(Markdown(reported())) {
			if !strings.HasPrefix(line, "|") {
				cells = 0
				continue
			}
			n := strings.Count(line, "|")
			if cells != 0 && n != cells {
				t.Errorf("%d bars, %d in the head: %s", n, cells, line)
			}
			cells = n
		}
	})
	t.Run("a run that measured nothing says so", func(t *testing.T) {
		text := Markdown(Result{Lines: Evaluate(Result{})})
		if strings.Count(text, "Not measured in this run.") != 6 || strings.Contains(text, "| kept |") ||
			strings.Contains(text, "NaN") {
			t.Error(text)
		}
	})
	t.Run("a transfer that took no time has no ratio", func(t *testing.T) {
		if text := Markdown(Result{Transfers: []Transfer{{RoundTrip: time.Millisecond}}}); strings.Contains(text, "NaN") ||
			strings.Contains(text, "+Inf") {
			t.Error(text)
		}
	})
}

func TestSummary(t *testing.T) {
	if got := Summary(reported()); got != "bench: 61 of 61 budgets kept" {
		t.Errorf("all is well: %q", got)
	}
	r := good()
	r.Joins[0].Worst.Execs, r.Joins[0].Worst.Reboots, r.Joins[2].Seconds = 9, 2, 11
	r.Joins = r.Joins[:3]
	r.Lines = Evaluate(r)
	got := Summary(r)
	want := "bench: 55 of 61 budgets kept, 2 over, 1 slow, 3 not measured: " +
		"execs of first configuration, worst host of all runs 9 (budget ≤ 8); reboots of first configuration, worst host of all runs 2 (budget ≤ 1)"
	if got != want || strings.Contains(got, "\n") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
