package main

import (
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/controller/metric"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
)

// Markers around each generated part: what others ask about nodes, metrics, and alerts.
const (
	begin = "<!-- begin of what hack/metrics writes -->"
	end   = "<!-- end of what hack/metrics writes -->"
)

// rewrite returns the document with the texts between the markers, in their order. It keeps every other byte.
func rewrite(document []byte, texts ...string) ([]byte, error) {
	rest, fresh := string(document), ""
	for _, text := range texts {
		before, after, found := strings.Cut(rest, begin)
		_, after, ended := strings.Cut(after, end)
		if !found || !ended {
			break
		}
		fresh, rest = fresh+before+begin+"\n\n"+text+"\n"+end, after
		texts = texts[1:]
	}
	if len(texts) > 0 || strings.Contains(rest, begin) {
		return nil, fmt.Errorf("the document needs a line %q and after it a line %q for each of its tables", begin, end)
	}
	return []byte(fresh + rest), nil
}

// expression is what the console or a dashboard asks about a node; a test of lab/prometheus has evaluated it.
type expression struct {
	Where string `json:"where"`
	Shows string `json:"shows"`
	Expr  string `json:"expr"`
	// None says why there is no result; empty if there is one.
	None string `json:"none"`
	// Value is the result over the series of the test.
	Value float64 `json:"value"`
}

func expressions(all []expression) string {
	var b strings.Builder
	b.WriteString("| where | shows | expression | data |\n|---|---|---|---|\n")
	for _, e := range all {
		data := "yes"
		if e.None != "" {
			data = "no. " + e.None
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", e.Where, e.Shows, code(e.Expr), data)
	}
	return b.String()
}

// code returns an expression as a cell of a table shows it.
func code(expr string) string { return "`" + strings.ReplaceAll(expr, "|", `\|`) + "`" }

func metrics(all []metric.Definition) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range all {
		var labels []string
		for _, label := range d.Labels {
			labels = append(labels, labelCell(label))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, strings.Join(labels, "<br>"), d.Help)
	}
	return b.String()
}

// labelCell says which values a label has, and what bounds them.
func labelCell(label metric.Label) string {
	values := strings.ReplaceAll(label.Values, "conditions.md", "[conditions.md](conditions.md)")
	if label.AtMost > 4 {
		values += fmt.Sprintf(", at most %d", label.AtMost)
	}
	return "`" + label.Name + "`: " + values
}

func alerts(all []monitoring.Alert) string {
	var b strings.Builder
	b.WriteString("| alert | fires when |\n|---|---|\n")
	for _, a := range all {
		holds := code(a.Expr)
		if a.For != "" {
			holds += " for " + a.For
		}
		fmt.Fprintf(&b, "| [`%s`](conditions.md#%s) | %s<br>%s |\n", a.Name, strings.ToLower(a.Name), a.Summary, holds)
	}
	return b.String()
}
