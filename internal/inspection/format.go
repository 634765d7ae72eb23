package inspection

import (
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/inspection/diagnosis"
	"github.com/windows-machine-config/wmco/internal/inspection/dryrun"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// formatForecasts formats forecasts as text.
func formatForecasts(forecasts []Forecast) string {
	if len(forecasts) == 0 {
		return "There are no Windows hosts.\n"
	}
	var texts []string
	for _, f := range forecasts {
		texts = append(texts, formatForecast(f))
	}
	return strings.Join(texts, "\n")
}

func formatForecast(f Forecast) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s", f.Instance, f.Address)
	if f.Node != "" {
		fmt.Fprintf(&b, ", Node %s", f.Node)
	}
	fmt.Fprintf(&b, "): %s\n", formatSummary(f))
	if f.Error != "" {
		fmt.Fprintf(&b, "  %s\n", f.Error)
	}
	if f.HeldBack != "" && f.HasChanges() {
		fmt.Fprintf(&b, "  The operator does not replace it, because a new host would not become a node: %s\n", f.HeldBack)
	}
	for _, note := range f.Notes {
		fmt.Fprintf(&b, "  %s\n", note)
	}
	for i, step := range f.Steps {
		fmt.Fprintf(&b, "  %d. %s%s\n     because %s\n", i+1, step.Name, formatImpact(step), step.Reason)
	}
	if f.BytesToSend > 0 {
		fmt.Fprintf(&b, "  Sent to the host: %s of about %s.\n", sanitize.Pluralize(f.FilesToSend, "file"), sanitize.FormatMebibytes(f.BytesToSend))
	}
	if len(f.Needs) > 0 {
		needs := make([]string, len(f.Needs))
		for i, need := range f.Needs {
			needs[i] = string(need)
		}
		fmt.Fprintf(&b, "  Further steps wait for: %s.\n", strings.Join(needs, ", "))
	}
	writeDrain(&b, f)
	return b.String()
}

// writeDrain writes the pods that are evicted before the steps.
func writeDrain(b *strings.Builder, f Forecast) {
	if !f.Drains {
		return
	}
	if len(f.Pods) == 0 {
		b.WriteString("  The node is drained first; no pods are evicted.\n")
		return
	}
	fmt.Fprintf(b, "  The node is drained first; %s:\n", sanitize.Pluralize(len(f.Pods), "pod is evicted", "pods are evicted"))
	for _, pod := range f.Pods {
		fmt.Fprintf(b, "  - %s/%s%s\n", pod.Namespace, pod.Name, formatEvictionBlocker(pod))
	}
}

func formatEvictionBlocker(pod dryrun.Pod) string {
	if pod.Held == "" {
		return ""
	}
	return ": blocked. " + pod.Held
}

func formatSummary(f Forecast) string {
	switch {
	case f.Error != "":
		return "not known"
	case f.Removed:
		return "is removed"
	case f.Replaced:
		return "is replaced"
	case !f.HasChanges():
		return "no change"
	}
	return sanitize.Pluralize(len(f.Steps), "step")
}

// formatImpact describes the impact of a step on pods and on the host.
func formatImpact(step dryrun.Step) string {
	switch {
	case step.Restarts:
		return " (restarts the host)"
	case step.DisruptsPods:
		return " (disrupts pods)"
	}
	return ""
}

// formatOutcome returns the word for an outcome.
func formatOutcome(outcome diagnosis.Outcome) string {
	switch outcome {
	case diagnosis.Passed:
		return "passed"
	case diagnosis.Failed:
		return "FAILED"
	}
	return "not reached"
}

// formatDiagnosis formats a diagnosis as text.
func formatDiagnosis(d Diagnosis) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Host %s", d.Host)
	if d.Instance != "" {
		fmt.Fprintf(&b, ", WindowsInstance %s", d.Instance)
	} else {
		b.WriteString(", not listed")
	}
	fmt.Fprintf(&b, ", as user %s:\n", d.User)
	for _, rung := range d.Checks {
		line := fmt.Sprintf("  %-14s %-12s %s", rung.Name, formatOutcome(rung.Outcome), rung.Message)
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
		if rung.Remedy != "" {
			fmt.Fprintf(&b, "  %-14s %-12s %s\n", "", "", rung.Remedy)
		}
	}
	return b.String()
}
