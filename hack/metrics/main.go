// Command metrics keeps docs/monitoring.md true: which metrics the operator has, and which alerts. The tables there
// come from the catalog of metrics in internal/controller/metric and from the alerts in internal/controller/monitoring.
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

	"github.com/windows-machine-config/wmco/internal/controller/metric"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
)

const (
	document = "docs/monitoring.md"
	grafana  = "examples/grafana-windows-nodes.json"
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
	fresh, err := rewrite(old, metrics(metric.Catalog()), alerts(monitoring.Alerts()))
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
	_, err = fmt.Fprintf(out, "%s: %d metrics, %d alerts\n", document, len(metric.Catalog()), len(monitoring.Alerts()))
	return err
}
