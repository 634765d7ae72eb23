package prometheus

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// Files that the operator's tests and `make generate` keep up to date.
const (
	consoleFile = "testdata/dashboard.json"
	grafanaFile = "../../examples/grafana-windows-nodes.json"
	catalogFile = "../../docs/metrics.md"
)

// others are metrics from other sources than the operator and its rules.
var others = []string{"up", "kubelet_certificate_manager_client_ttl_seconds"}

// entry is a row of the catalog of the operator's metrics.
type entry struct {
	name, kind string
	labels     []string
}

func catalog(t *testing.T) (all []entry) {
	t.Helper()
	data, err := os.ReadFile(catalogFile)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(wmco_\\w+)` \\| (gauge|counter|histogram) \\| (.*?) \\|")
	label := regexp.MustCompile("(?:^|<br>)`(\\w+)`:")
	for _, match := range row.FindAllStringSubmatch(string(data), -1) {
		e := entry{name: match[1], kind: match[2]}
		for _, found := range label.FindAllStringSubmatch(match[3], -1) {
			e.labels = append(e.labels, found[1])
		}
		all = append(all, e)
	}
	if len(all) < 20 {
		t.Fatalf("the catalog has only %d metrics", len(all))
	}
	return all
}

// series returns fake series of the operator for a metric of the catalog.
func (e entry) series() string {
	var labels []string
	for _, label := range e.labels {
		value := map[string]string{"node": "win-a", "name": "a"}[label]
		if value == "" {
			value = "some"
		}
		labels = append(labels, fmt.Sprintf("%s=%q", label, value))
	}
	with := "{" + strings.Join(labels, ",") + "}"
	switch e.kind {
	case "counter":
		return "  " + e.name + with + " 0+3x30\n"
	case "histogram":
		return "  " + e.name + "_sum" + with + " 0+6x30\n  " + e.name + "_count" + with + " 0+3x30\n"
	}
	return "  " + e.name + with + " 1x30\n"
}

// queries returns the queries of a dashboard by panel title.
func queries(t *testing.T, file string) map[string][]string {
	t.Helper()
	type panel struct {
		Title   string
		Targets []struct{ Expr string }
	}
	var dashboard struct {
		Panels []panel                    // Grafana format
		Rows   []struct{ Panels []panel } // console format
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	all := dashboard.Panels
	for _, row := range dashboard.Rows {
		all = append(all, row.Panels...)
	}
	found := map[string][]string{}
	for _, p := range all {
		for _, target := range p.Targets {
			found[p.Title] = append(found[p.Title], target.Expr)
		}
	}
	return found
}

func TestDashboards_EachPanelHasData(t *testing.T) {
	var more []string
	for _, e := range catalog(t) {
		more = append(more, e.series())
	}
	more = append(more, "  up{TARGET} 1x30\n", "  kubelet_certificate_manager_client_ttl_seconds{node=\"win-a\"} 9000x30\n")
	m := newMonitored(t, more...)
	console, grafana := queries(t, consoleFile), queries(t, grafanaFile)
	if len(console) < 20 || fmt.Sprint(console) != fmt.Sprint(grafana) {
		t.Errorf("the console has %v, Grafana %v", console, grafana)
	}
	for title, exprs := range grafana {
		t.Run(title, func(t *testing.T) {
			for _, expr := range exprs {
				if got := m.ask(strings.ReplaceAll(expr, "$node", "win-a")); len(got) == 0 {
					t.Errorf("%s gives nothing", expr)
				}
			}
		})
	}
	t.Run("and the panels of a node are empty for a node that is not there", func(t *testing.T) {
		for _, expr := range grafana["Memory"] {
			if got := m.ask(strings.ReplaceAll(expr, "$node", "other")); len(got) > 0 {
				t.Errorf("%s gives %v", expr, got)
			}
		}
	})
}

// metricsOf returns the metrics in an expression.
func metricsOf(t *testing.T, expr string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseExpr(strings.ReplaceAll(expr, "$node", "win-a"))
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names = append(names, selector.Name)
		}
		return nil
	})
	return names
}

func TestMetrics_UsedByAlertsAndDashboardsExist(t *testing.T) {
	known := slices.Clone(others)
	for _, e := range catalog(t) {
		known = append(known, e.name)
		if e.kind == "histogram" {
			known = append(known, e.name+"_sum", e.name+"_count")
		}
	}
	read := map[string][]string{}
	for _, group := range ruleGroups(t) {
		for _, r := range group.Rules {
			if r.Record != "" {
				known = append(known, r.Record)
			} else {
				read[r.Alert] = metricsOf(t, r.Expr)
			}
		}
	}
	for title, exprs := range queries(t, grafanaFile) {
		for _, expr := range exprs {
			read[title] = append(read[title], metricsOf(t, expr)...)
		}
	}
	for where, names := range read {
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("%s reads %s, which nothing has", where, name)
			}
		}
	}
}
