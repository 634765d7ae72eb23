package status

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/windows-machine-config/wmco/internal/fleet"
)

// view is the layout of the output.
type view struct {
	now       time.Time
	width     int // columns of the terminal; 0 without a terminal
	wide      bool
	noHeaders bool
	// namespaces adds a column.
	namespaces bool
	// inactivityWarning is the warning that no operator is running.
	inactivityWarning string
	// searchedNamespace is the searched namespace, as the end of a sentence.
	searchedNamespace string
}

// printTable prints a row for each instance. Unless the output is wide, the reasons of unsettled instances and the
// state of the disruption policy follow.
func (v view) printTable(out io.Writer, f fleet.Fleet) error {
	if len(f.Instances) == 0 {
		why := "There are no Windows hosts" + v.searchedNamespace +
			": no Windows Machine has an address yet, and the ConfigMap windows-instances lists none."
		_, err := fmt.Fprintln(out, wrapText(why+" "+v.inactivityWarning, "", v.width))
		return err
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: v.wide, NoHeaders: v.noHeaders})
	if err := printer.PrintObj(v.newTable(f), out); err != nil {
		return err
	}
	if v.wide {
		return nil
	}
	paragraphs := append(v.formatReasons(f), v.formatDisruptions(f)...)
	if v.inactivityWarning != "" {
		paragraphs = append(paragraphs, wrapText(v.inactivityWarning, "", v.width))
	}
	for _, paragraph := range paragraphs {
		if _, err := fmt.Fprintf(out, "\n%s\n", paragraph); err != nil {
			return err
		}
	}
	return nil
}

func (v view) newTable(f fleet.Fleet) *metav1.Table {
	column := func(name string, priority int32) metav1.TableColumnDefinition {
		return metav1.TableColumnDefinition{Name: name, Type: "string", Priority: priority}
	}
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Name", 0), column("Address", 0), column("Source", 0), column("Node", 0), column("Version", 0),
		column("State", 0), column("Since", 0), column("Windows", 1), column("Disruption", 1), column("Next", 1),
	}}
	if v.namespaces {
		table.ColumnDefinitions = append([]metav1.TableColumnDefinition{column("Namespace", 0)}, table.ColumnDefinitions...)
	}
	for _, i := range f.Instances {
		cells := []any{i.Name, i.Spec.Address, sourceKind(i), orNone(fleet.NodeName(i)), orNone(i.Status.Version),
			fleet.State(i), fleet.Age(v.now, fleet.Since(i)), orNone(windowsBuild(i)), orNone(disruptionState(f, i)), orNone(i.Status.NextAction)}
		if v.namespaces {
			cells = append([]any{i.Namespace}, cells...)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	if v.width > 0 && !v.wide {
		removeColumns(table, v.width)
	}
	return table
}

// dispensable lists the columns that are removed on a narrow terminal, in order. The output for one host shows
// all data.
var dispensable = []string{"Source", "Address", "Version", "Node"}

// gap is the space between two columns.
const gap = 3

// removeColumns removes dispensable columns until the table fits into a terminal, or no such column is left.
func removeColumns(table *metav1.Table, width int) {
	for _, name := range dispensable {
		if tableWidth(table) <= width {
			return
		}
		at := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
		table.ColumnDefinitions = slices.Delete(table.ColumnDefinitions, at, at+1)
		for i := range table.Rows {
			table.Rows[i].Cells = slices.Delete(table.Rows[i].Cells, at, at+1)
		}
	}
}

func tableWidth(table *metav1.Table) int {
	sum := -gap
	for n, column := range table.ColumnDefinitions {
		if column.Priority > 0 {
			continue
		}
		widest := len(column.Name)
		for _, row := range table.Rows {
			widest = max(widest, len(fmt.Sprint(row.Cells[n])))
		}
		sum += widest + gap
	}
	return sum
}

// digits matches the variable parts of times, addresses and attempts.
var digits = regexp.MustCompile(`[0-9]+`)

// formatReasons returns paragraphs about the unsettled instances. Instances in the same state share a paragraph if
// their next actions differ only in numbers. The paragraph shows the next action of the first instance.
func (v view) formatReasons(f fleet.Fleet) []string {
	type group struct{ state, next string }
	var order []group
	members := map[group][]string{}
	next := map[group]string{}
	for _, i := range f.Instances {
		if fleet.HasNoPendingWork(i) {
			continue
		}
		g := group{fleet.State(i), digits.ReplaceAllString(i.Status.NextAction, "0")}
		if members[g] == nil {
			order = append(order, g)
			next[g] = i.Status.NextAction
		}
		members[g] = append(members[g], i.Name)
	}
	var paragraphs []string
	for _, g := range order {
		next := next[g]
		if next == "" {
			next = "The operator has not checked the host yet. If this takes long, check that the operator's pod runs."
		}
		heading := fmt.Sprintf("%s: %s", g.state, formatNames(members[g]))
		paragraphs = append(paragraphs, wrapText(heading, "", v.width)+"\n"+wrapText(next, "  ", v.width))
	}
	return paragraphs
}

// maxNames is the maximum number of named instances in one state.
const maxNames = 5

func formatNames(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

// formatDisruptions returns paragraphs about current and allowed disruptions.
func (v view) formatDisruptions(f fleet.Fleet) []string {
	var paragraphs []string
	for _, policy := range f.Policies {
		if policy.Status.Summary == "" {
			continue
		}
		label := "Disruptions: "
		if v.namespaces {
			label = "Disruptions in " + policy.Namespace + ": "
		}
		paragraphs = append(paragraphs, wrapWithLabel(label, policy.Status.Summary, v.width))
	}
	return paragraphs
}

func sourceKind(i fleet.Instance) string {
	if i.Spec.Source.Machine != nil {
		return "Machine"
	}
	return "ConfigMap"
}

func windowsBuild(i fleet.Instance) string {
	if i.Status.Host == nil {
		return ""
	}
	return i.Status.Host.Build
}

// disruptionState describes whether an instance is being disrupted, or waits for a disruption slot.
func disruptionState(f fleet.Fleet, i fleet.Instance) string {
	if entry := f.Disruption(i); entry != nil {
		return string(entry.Cause)
	}
	if i.Status.DisruptionPending {
		return "waits"
	}
	return ""
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

// unsatisfiedNames returns the names of the instances that do not satisfy the predicate.
func unsatisfiedNames(instances []fleet.Instance, holds func(fleet.Instance) bool) []string {
	var names []string
	for _, i := range instances {
		if !holds(i) {
			names = append(names, i.Name)
		}
	}
	slices.Sort(names)
	return names
}
