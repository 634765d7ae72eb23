package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host/hosttest"
)

const (
	begin = "<!-- begin of what hack/verified writes -->"
	end   = "<!-- end of what hack/verified writes -->"
)

// checkReport finds what the suite of today would not write.
func checkReport(report hosttest.Report, where hosttest.Environment, behaviors []hosttest.Behavior) error {
	if report.Environment != where {
		return fmt.Errorf("the results come from %q", report.Environment)
	}
	known := map[string]bool{}
	for _, b := range behaviors {
		known[b.ID()] = true
	}
	var wrong []error
	for _, result := range report.Results {
		switch {
		case !known[result.ID()]:
			wrong = append(wrong, fmt.Errorf("the suite no longer has the behavior %q, or has it twice: run the suite again",
				result.ID()))
		case !slices.Contains(possible(where), result.Result):
			wrong = append(wrong, fmt.Errorf("the result of %q is %q: such a result cannot be committed", result.ID(), result.Result))
		case strings.ContainsAny(result.Reason, "|\n"):
			wrong = append(wrong, fmt.Errorf("the reason given for %q does not fit into a table cell", result.ID()))
		}
		known[result.ID()] = false
	}
	return errors.Join(wrong...)
}

// rewrite returns the document with the text between the markers. It keeps every other byte.
func rewrite(document []byte, text string) ([]byte, error) {
	before, rest, found := strings.Cut(string(document), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended || strings.Contains(after, begin) {
		return nil, fmt.Errorf("the document needs exactly one line %q and, after it, exactly one line %q", begin, end)
	}
	return []byte(before + begin + "\n\n" + text + "\n" + end + after), nil
}

// render writes the tables.
func render(behaviors []hosttest.Behavior, columns []column) string {
	var b strings.Builder
	b.WriteString(where(columns))
	b.WriteString("\n### By operation\n\n| operation |" + titles(columns) + "\n|---|" + strings.Repeat("---|",
		len(columns)) + "\n")
	for _, operation := range operations(behaviors) {
		fmt.Fprintf(&b, "| `%s` |", operation)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", count(operation, behaviors, c))
		}
		b.WriteByte('\n')
	}
	b.WriteString(reasons(behaviors, columns))
	b.WriteString("\n### Every behavior\n\n| operation | behavior |" + titles(columns) + "\n|---|---|" +
		strings.Repeat("---|", len(columns)) + "\n")
	for _, behavior := range behaviors {
		fmt.Fprintf(&b, "| `%s` | %s |", behavior.Operation, behavior.Sentence)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", c.of(behavior))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// where tells what the suite ran on.
func where(columns []column) string {
	var b strings.Builder
	for _, c := range columns {
		machine := "**not yet run there**"
		if c.ran {
			machine = "run on a machine that says it is " + c.report.System
		}
		fmt.Fprintf(&b, "- %s: %s\n", c.title, machine)
	}
	return b.String()
}

func titles(columns []column) string {
	var b strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	return b.String()
}

// of is what is known of one behavior.
func (c column) of(b hosttest.Behavior) hosttest.Standing {
	if !c.ran {
		return hosttest.NotRun
	}
	return c.report.Of(b.ID()).Result
}

// operations returns the operations of a host, each once, in its order.
func operations(behaviors []hosttest.Behavior) []string {
	var known []string
	for _, operation := range hosttest.Operations() {
		if slices.ContainsFunc(behaviors, func(b hosttest.Behavior) bool { return b.Operation == operation }) {
			known = append(known, operation)
		}
	}
	return known
}

// count is, say, "3 proven, 1 fake only".
func count(operation string, behaviors []hosttest.Behavior, c column) string {
	counts := map[hosttest.Standing]int{}
	for _, b := range behaviors {
		if b.Operation == operation {
			counts[c.of(b)]++
		}
	}
	var parts []string
	for _, standing := range []hosttest.Standing{
		hosttest.Simulated, hosttest.Proven, hosttest.StandIn, hosttest.Differs, hosttest.FakeOnly,
		hosttest.Failed, hosttest.NotRun,
	} {
		if counts[standing] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[standing], standing))
		}
	}
	return strings.Join(parts, ", ")
}

// reasons lists what was not shown by the environment itself, and why.
func reasons(behaviors []hosttest.Behavior, columns []column) string {
	var b strings.Builder
	for _, c := range columns {
		type cause struct {
			standing hosttest.Standing
			reason   string
		}
		var order []cause
		of := map[cause][]string{}
		for _, behavior := range behaviors {
			result := c.report.Of(behavior.ID())
			if !c.ran || result.Reason == "" {
				continue
			}
			key := cause{result.Result, result.Reason}
			if of[key] == nil {
				order = append(order, key)
			}
			if !slices.Contains(of[key], "`"+behavior.Operation+"`") {
				of[key] = append(of[key], "`"+behavior.Operation+"`")
			}
		}
		if len(order) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### Not shown by itself: %s\n\n| | why | operations |\n|---|---|---|\n", c.title)
		for _, key := range order {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", key.standing, key.reason, strings.Join(of[key], ", "))
		}
	}
	return b.String()
}
