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
	"github.com/windows-machine-config/wmco/internal/text"
)

// one prints all data of an instance.
func (v view) one(out io.Writer, f fleet.Fleet, i fleet.Instance, events []corev1.Event) error {
	var sections []string
	for _, lines := range [][]string{v.head(f, i), v.failure(i), v.timeline(i), v.events(events)} {
		if len(lines) > 0 {
			sections = append(sections, strings.Join(lines, "\n"))
		}
	}
	_, err := fmt.Fprintln(out, strings.Join(sections, "\n\n"))
	return err
}

// labelWidth is the width of the first column of a description.
const labelWidth = 13

func (v view) line(label, format string, arguments ...any) string {
	return hanging(fmt.Sprintf("%-*s", labelWidth, label+":"), fmt.Sprintf(format, arguments...), v.width)
}

func (v view) head(f fleet.Fleet, i fleet.Instance) []string {
	lines := []string{v.line("Name", "%s", i.Name), v.line("Source", "%s", sourceObject(i)),
		v.line("Address", "%s, user %s", i.Spec.Address, orNone(i.Spec.Username))}
	if host := i.Status.Host; host != nil {
		lines = append(lines, v.line("Host", "%s, %s, build %s", host.Name, orNone(host.Product), orNone(host.Build)))
	}
	if key := i.Status.HostKey; key != nil {
		lines = append(lines, v.line("Host key", "%s (%s)", key.Fingerprint, key.Type))
	}
	lines = append(lines, v.line("Node", "%s", orNone(fleet.NodeName(i))),
		v.line("Version", "%s", orNone(i.Status.Version)),
		v.line("State", "%s for %s", fleet.State(i), fleet.Age(v.now, fleet.Since(i))))
	if obstacle := fleet.Obstacle(i); obstacle != nil && obstacle.Message != "" {
		lines = append(lines, v.line("Why", "%s", obstacle.Message))
	}
	if i.Status.NextAction != "" {
		lines = append(lines, v.line("Next", "%s", i.Status.NextAction))
	}
	if v.absence != "" {
		lines = append(lines, v.line("Operator", "%s", v.absence))
	}
	return append(lines, v.work(f, i)...)
}

// work describes the current work on the host.
func (v view) work(f fleet.Fleet, i fleet.Instance) []string {
	var lines []string
	if step := i.Status.Step; step != nil {
		place := ""
		if step.Total > 0 {
			place = fmt.Sprintf(" (%d of %d)", step.Index, step.Total)
		}
		lines = append(lines, v.line("Step", "%s%s for %s %s", step.Name, place, fleet.Age(v.now, step.StartedAt.Time),
			step.Detail))
	}
	if entry := f.Disturbance(i); entry != nil {
		lines = append(lines, v.line("Disruption", "%s, for %s, as one of pool %s", entry.Cause, fleet.Age(v.now, entry.Since.Time),
			entry.Pool))
	} else if policy := f.Policy(i); i.Status.DisruptionPending && policy != nil {
		lines = append(lines, v.line("Disruption", "Waiting for a slot. %s", policy.Status.Summary))
	}
	if i.Spec.Paused {
		lines = append(lines, v.line("Paused", "The operator does not manage the host. Resume with: kubectl windows resume %s",
			i.Name))
	}
	for _, certificate := range i.Status.Certificates {
		lines = append(lines, v.line("Certificate", "%s, until %s", certificate.Name, moment(certificate.NotAfter.Time)))
	}
	return lines
}

func sourceObject(i fleet.Instance) string {
	if machine := i.Spec.Source.Machine; machine != nil {
		return "Machine " + machine.Namespace + "/" + machine.Name
	}
	return "ConfigMap windows-instances, key " + i.Spec.Source.ConfigMapKey
}

// failure describes the last failed change of a node in service.
func (v view) failure(i fleet.Instance) []string {
	failed := i.Status.FailedChange
	if failed == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("Last failure: %s, %s ago, %d attempts", failed.Cause, fleet.Age(v.now, failed.Time.Time),
		failed.Attempts), v.line("  Reason", "%s", failed.Reason)}
	if failed.Message != "" {
		lines = append(lines, v.line("  Message", "%s", failed.Message))
	}
	lines = append(lines, v.line("  After", "%s", fleet.AfterFailure(*failed)))
	if failed.RetryAfter != nil {
		lines = append(lines, v.line("  Retry", "at %s, or at once with: kubectl windows retry %s",
			moment(failed.RetryAfter.Time), i.Name))
	}
	return lines
}

// timeline lists the transitions of the conditions, each with the time since the previous transition.
func (v view) timeline(i fleet.Instance) []string {
	conditions := fleet.Transitions(i)
	if len(conditions) == 0 {
		return nil
	}
	before := i.CreationTimestamp.Time
	lines := []string{"Timeline (UTC):", fmt.Sprintf("  %s          created", moment(before))}
	for _, c := range conditions {
		state := fmt.Sprintf("%s=%s", c.Type, c.Status)
		if c.Status != metav1.ConditionTrue {
			state += " (" + c.Reason + ")"
		}
		lines = append(lines, fmt.Sprintf("  %s  %7s %s", moment(c.LastTransitionTime.Time),
			"+"+fleet.Age(c.LastTransitionTime.Time, before), state))
		before = c.LastTransitionTime.Time
	}
	return lines
}

// mostEvents is the maximum number of events shown: the latest events.
const mostEvents = 10

// longestEvent is the maximum length of an event's message, which may quote a host, in bytes.
const longestEvent = 2000

func (v view) events(events []corev1.Event) []string {
	if len(events) == 0 {
		return nil
	}
	lines := []string{"Events (UTC):"}
	for _, e := range events[max(0, len(events)-mostEvents):] {
		times := cmp.Or(e.Count, 1)
		if e.Series != nil {
			times = e.Series.Count
		}
		often := ""
		if times > 1 {
			often = fmt.Sprintf(" (%d times)", times)
		}
		label := fmt.Sprintf("  %s  %-7s  ", moment(fleet.LastSeen(e)), e.Type)
		lines = append(lines, hanging(label, e.Reason+often+": "+text.Plain(e.Message, longestEvent), v.width))
	}
	return lines
}

// moment formats a time as in messages of the operator.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
