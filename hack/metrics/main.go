// Command metrics keeps docs/monitoring.md true: which metrics the operator has, which alerts, and which questions of
// others have an answer for Windows nodes. The tables there come from the catalog of metrics in
// internal/controller/metric, the alerts in internal/controller/monitoring, and the expressions that the tests of
// lab/prometheus evaluate.
// It also writes the dashboard for Grafana. Run it from the root of the repository:
//
//	go run ./hack/metrics          # rewrite the tables and the dashboard
//	go run ./hack/metrics -check   # fail if that would change one of them
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/controller/metric"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
)

const (
	document = "docs/monitoring.md"
	grafana  = "examples/grafana-windows-nodes.json"
	asked    = "lab/prometheus/testdata/expressions.yaml"
)

var errStale = errors.New(document + " or " + grafana +
	" does not say what the code says: run `make generate` and commit the result")

func main() {
	root := flag.String("root", ".", "`directory` of the repository")
	check := flag.Bool("check", false, "change nothing, fail if a file is out of date")
	flag.Parse()
	if err := run(*root, *check, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

// run rewrites the files below root, or only compares them.
func run(root string, check bool, out io.Writer) error {
	old, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(document)))
	if err != nil {
		return err
	}
	questions, err := readExpressions(filepath.Join(root, filepath.FromSlash(asked)))
	if err != nil {
		return err
	}
	fresh, err := rewrite(old, expressions(questions), metrics(metric.Catalog()), alerts(monitoring.Alerts()))
	if err != nil {
		return err
	}
	stale := false
	for name, content := range map[string][]byte{document: fresh, grafana: monitoring.GrafanaDashboard()} {
		path := filepath.Join(root, filepath.FromSlash(name))
		present, err := os.ReadFile(path)
		if err == nil && bytes.Equal(present, content) {
			continue
		}
		if stale = true; check {
			continue
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	if stale && check {
		return errStale
	}
	_, err = fmt.Fprintf(out, "%s: %d metrics, %d alerts, %d expressions\n", document, len(metric.Catalog()),
		len(monitoring.Alerts()), len(questions))
	return err
}

func readExpressions(path string) (all []expression, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return all, nil
}
