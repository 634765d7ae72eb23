package inspection

import (
	"fmt"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// formatRuns formats the output of the agent's latest commands on a host: a line for each line of the output.
func formatRuns(runs []agentapi.Run) string {
	var texts []string
	for _, run := range runs {
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n", sanitize.Plain(string(run.Command), result.MaxMessageLength))
		for _, line := range run.Lines {
			said := formatLine(line)
			fmt.Fprintf(&b, "  %s %s\n", line.Time.UTC().Format(time.RFC3339), sanitize.Plain(said, result.MaxMessageLength))
		}
		texts = append(texts, b.String())
	}
	return strings.Join(texts, "\n")
}

func formatLine(line agentapi.Line) string {
	switch {
	case line.Hello != nil:
		return fmt.Sprintf("started: agent %s, process %d, boot %s", line.Hello.Version, line.Hello.PID, line.Hello.BootID)
	case line.Step != nil:
		return formatStep(*line.Step)
	case line.Failure != nil:
		return fmt.Sprintf("failed, %s: %s", line.Failure.Reason, line.Failure)
	case line.Type == agentapi.TypeRebooting:
		return "the host restarts"
	case line.Result != nil:
		return formatResult(*line.Result)
	}
	return string(line.Type)
}

func formatStep(step agentapi.Step) string {
	said := fmt.Sprintf("step %d of %d, %s: %s", step.Index, step.Of, step.Name, step.State)
	switch {
	case step.State == agentapi.StepStarted && step.Reason != "":
		said += ", because " + step.Reason
	case step.Detail != "":
		said += ", " + step.Detail
	}
	return said
}

func formatResult(result agentapi.Result) string {
	said := "completed"
	if result.Plan != nil && len(result.Plan.Needs) > 0 {
		said += fmt.Sprintf(". Further steps wait for: %v", result.Plan.Needs)
	}
	if result.NoRollbackReason != "" {
		said += ". No rollback target: " + result.NoRollbackReason
	}
	if len(result.NotRestored) > 0 {
		said += ". Not restored: " + strings.Join(result.NotRestored, ", ")
	}
	for _, check := range result.Checks {
		if !check.Passed {
			said += fmt.Sprintf(". Check %s failed: %s", check.Name, check.Message)
		}
	}
	return said
}
