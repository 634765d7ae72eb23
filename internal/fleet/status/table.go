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

// view is how a fleet is shown.
type view struct {
	now       time.Time
	width     int // columns of the terminal; 0 without one
	wide      bool
	noHeaders bool
	// namespaces adds a column.
	namespaces bool
	// absence says that no operator is at work.
	absence string
	// place is where the hosts are looked for, as the end of a sentence.
	place string
}

// table prints a row for each instance; below it, unless it is wide, why those that are not settled are not, and what
// the gate does.
func (v view) table(out io.Writer, f fleet.Fleet) error {
	if len(f.Instances) == 0 {
		why := "There are no Windows hosts" + v.place +
			": no Windows Machine has an address yet, and the ConfigMap windows-instances lists none."
		_, err := fmt.Fprintln(out, wrapped(why+" "+v.absence, "", v.width))
		return err
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: v.wide, NoHeaders: v.noHeaders})
	if err := printer.PrintObj(v.rows(f), out); err != nil {
		return err
	}
	if v.wide {
		return nil
	}
	paragraphs := append(v.reasons(f), v.gate(f)...)
	if v.absence != "" {
		paragraphs = append(paragraphs, wrapped(v.absence, "", v.width))
	}
	for _, paragraph := range paragraphs {
		if _, err := fmt.Fprintf(out, "\n%s\n", paragraph); err != nil {
			return err
		}
	}
	return nil
}

func (v view) rows(f fleet.Fleet) *metav1.Table {
	column := func(name string, priority int32) metav1.TableColumnDefinition {
		return metav1.TableColumnDefinition{Name: name, Type: "string", Priority: priority}
	}
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		column("Name", 0), column("Address", 0), column("Source", 0), column("Node", 0), column("Version", 0),
		column("State", 0), column("Since", 0), column("Windows", 1), column("Turn", 1), column("Next", 1),
	}}
	if v.namespaces {
		table.ColumnDefinitions = append([]metav1.TableColumnDefinition{column("Namespace", 0)}, table.ColumnDefinitions...)
	}
	for _, i := range f.Instances {
		cells := []any{i.Name, i.Spec.Address, source(i), orNone(fleet.NodeName(i)), orNone(i.Status.Version),
			fleet.State(i), fleet.Age(v.now, fleet.Since(i)), orNone(build(i)), orNone(turn(f, i)), orNone(i.Status.NextAction)}
		if v.namespaces {
			cells = append([]any{i.Namespace}, cells...)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	if v.width > 0 && !v.wide {
		narrow(table, v.width)
	}
	return table
}

// dispensable are the columns that a narrow terminal does without, the first one first. Of one host all is shown.
var dispensable = []string{"Source", "Address", "Version", "Node"}

// gap is the space between two columns.
const gap = 3

// narrow takes columns away until the table fits into a terminal, or none is left that it could do without.
func narrow(table *metav1.Table, width int) {
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

// digits are what times, addresses and attempts differ in.
var digits = regexp.MustCompile(`[0-9]+`)

// reasons are paragraphs about the instances that are not settled. Those that are in one state, with the same thing to
// be done next but for its time or its address, share one: it says what is next for the first of them.
func (v view) reasons(f fleet.Fleet) []string {
	type group struct{ state, next string }
	var order []group
	members := map[group][]string{}
	next := map[group]string{}
	for _, i := range f.Instances {
		if fleet.Settled(i) {
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
			next = "The operator has not checked the host yet. If this lasts, check that the operator's pod runs."
		}
		heading := fmt.Sprintf("%s: %s", g.state, listed(members[g]))
		paragraphs = append(paragraphs, wrapped(heading, "", v.width)+"\n"+wrapped(next, "  ", v.width))
	}
	return paragraphs
}

// mostNamed is how many instances in one state are named.
const mostNamed = 5

func listed(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// gate says what is disturbed now, and what may be.
func (v view) gate(f fleet.Fleet) []string {
	var paragraphs []string
	for _, policy := range f.Policies {
		if policy.Status.Summary == "" {
			continue
		}
		label := "Disruptions: "
		if v.namespaces {
			label = "Disruptions in " + policy.Namespace + ": "
		}
		paragraphs = append(paragraphs, hanging(label, policy.Status.Summary, v.width))
	}
	return paragraphs
}

func source(i fleet.Instance) string {
	if i.Spec.Source.Machine != nil {
		return "Machine"
	}
	return "ConfigMap"
}

func build(i fleet.Instance) string {
	if i.Status.Host == nil {
		return ""
	}
	return i.Status.Host.Build
}

// turn says whether an instance is being disturbed, or waits for its turn.
func turn(f fleet.Fleet, i fleet.Instance) string {
	if entry := f.Disturbance(i); entry != nil {
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

// unsettled are the names of the instances for which something does not hold.
func unsettled(instances []fleet.Instance, holds func(fleet.Instance) bool) []string {
	var names []string
	for _, i := range instances {
		if !holds(i) {
			names = append(names, i.Name)
		}
	}
	slices.Sort(names)
	return names
}
