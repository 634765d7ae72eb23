package status

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// printInstance prints all data of an instance.
func (v view) printInstance(out io.Writer, f fleet.Fleet, i fleet.Instance, events []corev1.Event) error {
	var sections []string
	for _, lines := range [][]string{v.formatHead(f, i), v.formatFailure(i), v.formatTimeline(i), v.formatEvents(events)} {
		if len(lines) > 0 {
			sections = append(sections, strings.Join(lines, "\n"))
		}
	}
	_, err := fmt.Fprintln(out, strings.Join(sections, "\n\n"))
	return err
}

// labelWidth is the width of the first column of a description.
const labelWidth = 13

func (v view) formatLine(label, format string, arguments ...any) string {
	return wrapWithLabel(fmt.Sprintf("%-*s", labelWidth, label+":"), fmt.Sprintf(format, arguments...), v.width)
}

func (v view) formatHead(f fleet.Fleet, i fleet.Instance) []string {
	lines := []string{v.formatLine("Name", "%s", i.Name), v.formatLine("Source", "%s", sourceObject(i)),
		v.formatLine("Address", "%s, user %s", i.Spec.Address, orNone(i.Spec.Username))}
	if host := i.Status.Host; host != nil {
		lines = append(lines, v.formatLine("Host", "%s, %s, build %s", host.Name, orNone(host.Product), orNone(host.Build)))
	}
	if key := i.Status.HostKey; key != nil {
		lines = append(lines, v.formatLine("Host key", "%s (%s)", key.Fingerprint, key.Type))
	}
	lines = append(lines, v.formatLine("Node", "%s", orNone(fleet.NodeName(i))),
		v.formatLine("Version", "%s", orNone(i.Status.Version)),
		v.formatLine("State", "%s for %s", fleet.State(i), fleet.Age(v.now, fleet.Since(i))))
	if obstacle := fleet.BlockingCondition(i); obstacle != nil && obstacle.Message != "" {
		lines = append(lines, v.formatLine("Why", "%s", obstacle.Message))
	}
	if i.Status.NextAction != "" {
		lines = append(lines, v.formatLine("Next", "%s", i.Status.NextAction))
	}
	if v.inactivityWarning != "" {
		lines = append(lines, v.formatLine("Operator", "%s", v.inactivityWarning))
	}
	return append(lines, v.formatWork(f, i)...)
}

// formatWork describes the current work on the host.
func (v view) formatWork(f fleet.Fleet, i fleet.Instance) []string {
	var lines []string
	if step := i.Status.Step; step != nil {
		place := ""
		if step.Total > 0 {
			place = fmt.Sprintf(" (%d of %d)", step.Index, step.Total)
		}
		lines = append(lines, v.formatLine("Step", "%s%s for %s %s", step.Name, place, fleet.Age(v.now, step.StartedAt.Time),
			step.Detail))
	}
	if entry := f.Disruption(i); entry != nil {
		lines = append(lines, v.formatLine("Disruption", "%s, for %s, as one of pool %s", entry.Cause, fleet.Age(v.now, entry.Since.Time),
			entry.Pool))
	} else if policy := f.Policy(i); i.Status.DisruptionPending && policy != nil {
		lines = append(lines, v.formatLine("Disruption", "Waiting for a slot. %s", policy.Status.Summary))
	}
	if i.Spec.Paused {
		lines = append(lines, v.formatLine("Paused", "The operator does not manage the host. Resume with: kubectl windows resume %s",
			i.Name))
	}
	for _, certificate := range i.Status.Certificates {
		lines = append(lines, v.formatLine("Certificate", "%s, until %s", certificate.Name, formatTime(certificate.NotAfter.Time)))
	}
	return lines
}

func sourceObject(i fleet.Instance) string {
	if machine := i.Spec.Source.Machine; machine != nil {
		return "Machine " + machine.Namespace + "/" + machine.Name
	}
	return "ConfigMap windows-instances, key " + i.Spec.Source.ConfigMapKey
}

// formatFailure describes the last failed change of a node in service.
func (v view) formatFailure(i fleet.Instance) []string {
	failed := i.Status.FailedChange
	if failed == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("Last failure: %s, %s ago, %d attempts", failed.Cause, fleet.Age(v.now, failed.Time.Time),
		failed.Attempts), v.formatLine("  Reason", "%s", failed.Reason)}
	if failed.Message != "" {
		lines = append(lines, v.formatLine("  Message", "%s", failed.Message))
	}
	lines = append(lines, v.formatLine("  After", "%s", fleet.DescribeAfterFailure(*failed)))
	if failed.RetryAfter != nil {
		lines = append(lines, v.formatLine("  Retry", "at %s, or at once with: kubectl windows retry %s",
			formatTime(failed.RetryAfter.Time), i.Name))
	}
	return lines
}

// formatTimeline lists the transitions of the conditions, each with the time since the previous transition.
func (v view) formatTimeline(i fleet.Instance) []string {
	conditions := fleet.Transitions(i)
	if len(conditions) == 0 {
		return nil
	}
	before := i.CreationTimestamp.Time
	lines := []string{"Timeline (UTC):", fmt.Sprintf("  %s          created", formatTime(before))}
	for _, c := range conditions {
		state := fmt.Sprintf("%s=%s", c.Type, c.Status)
		if c.Status != metav1.ConditionTrue {
			state += " (" + c.Reason + ")"
		}
		lines = append(lines, fmt.Sprintf("  %s  %7s %s", formatTime(c.LastTransitionTime.Time),
			"+"+fleet.Age(c.LastTransitionTime.Time, before), state))
		before = c.LastTransitionTime.Time
	}
	return lines
}

// maxEvents is the maximum number of events shown: the latest events.
const maxEvents = 10

// maxEventLength is the maximum length of an event's message, which may quote a host, in bytes.
const maxEventLength = 2000

func (v view) formatEvents(events []corev1.Event) []string {
	if len(events) == 0 {
		return nil
	}
	lines := []string{"Events (UTC):"}
	for _, e := range events[max(0, len(events)-maxEvents):] {
		times := cmp.Or(e.Count, 1)
		if e.Series != nil {
			times = e.Series.Count
		}
		often := ""
		if times > 1 {
			often = fmt.Sprintf(" (%d times)", times)
		}
		label := fmt.Sprintf("  %s  %-7s  ", formatTime(fleet.LastSeen(e)), e.Type)
		lines = append(lines, wrapWithLabel(label, e.Reason+often+": "+sanitize.Plain(e.Message, maxEventLength), v.width))
	}
	return lines
}

// formatTime formats a time as in messages of the operator.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
