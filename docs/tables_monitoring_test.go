package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
)

// The tables list the metrics and alerts of the operator, and the queries of other products with a result for
// Windows nodes. The tests of lab/prometheus evaluate the expressions of these queries.
func TestGeneratedTablesOfMonitoring(t *testing.T) {
	syncDocument(t, "metrics.md", expressionTable(readExpressions(t, "../lab/prometheus/testdata/expressions.yaml")),
		metricTable(metrics.Catalog()))
	syncDocument(t, "monitoring.md", alertTable(monitoring.Alerts()))
}

// expression is a query of the console or of a dashboard about a node, evaluated by a test of lab/prometheus.
type expression struct {
	Where string `json:"where"`
	Shows string `json:"shows"`
	Expr  string `json:"expr"`
	// None is the reason why there is no result, or "".
	None string `json:"none"`
	// Value is the result over the series of the test.
	Value float64 `json:"value"`
}

func readExpressions(t *testing.T, path string) (all []expression) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(readText(t, path)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func expressionTable(all []expression) string {
	var b strings.Builder
	b.WriteString("| where | shows | expression | data |\n|---|---|---|---|\n")
	for _, e := range all {
		data := "yes"
		if e.None != "" {
			data = "no. " + e.None
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", e.Where, e.Shows, inCode(e.Expr), data)
	}
	return b.String()
}

// inCode returns an expression formatted as a table cell.
func inCode(expr string) string { return "`" + strings.ReplaceAll(expr, "|", `\|`) + "`" }

func metricTable(all []metrics.Definition) string {
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

// labelCell describes the values of a label and their bound.
func labelCell(label metrics.Label) string {
	values := strings.ReplaceAll(label.Values, "conditions.md", "[conditions.md](conditions.md)")
	if label.MaxValues > 4 {
		values += fmt.Sprintf(", at most %d", label.MaxValues)
	}
	return "`" + label.Name + "`: " + values
}

func alertTable(all []monitoring.Alert) string {
	var b strings.Builder
	b.WriteString("| alert | fires when |\n|---|---|\n")
	for _, a := range all {
		holds := inCode(a.Expr)
		if a.For != "" {
			holds += " for " + a.For
		}
		fmt.Fprintf(&b, "| [`%s`](conditions.md#%s) | %s<br>%s |\n", a.Name, strings.ToLower(a.Name), a.Summary, holds)
	}
	return b.String()
}

func TestMetricTable_ShowsBoundOfLabel(t *testing.T) {
	got := metricTable([]metrics.Definition{{Name: "wmco_a_total", Type: metrics.TypeCounter, Help: "All.", Labels: []metrics.Label{
		{Name: "reason", Values: "reasons of conditions.md", MaxValues: 128}, {Name: "node", Values: "one for each node"}}}})
	want := "| `wmco_a_total` | counter | `reason`: reasons of [conditions.md](conditions.md), at most 128<br>`node`: one for each node | All. |\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
}

func TestExpressionTable_ShowsReasonForMissingData(t *testing.T) {
	got := expressionTable([]expression{{Where: "console", Shows: "CPU", Expr: `a{b=~"c|d"}`, Value: 1},
		{Where: "console", Shows: "load", Expr: "node_load1", None: "Windows has none."}})
	want := "| console | CPU | `a{b=~\"c\\|d\"}` | yes |\n| console | load | `node_load1` | no. Windows has none. |\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
}
