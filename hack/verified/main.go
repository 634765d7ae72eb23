// Command verified keeps the table of capabilities in docs/verified.md true: what the host contract suite showed, and
// where.
//
// The suite writes its results to docs/verified/fake.json (the machine in memory), wine.json (the lab's test hosts) and
// windows.json (a real Windows Server); the program only renders them, between two markers. A file that is not there
// means that the suite was not run in that environment. Run it from the root of the repository:
//
//	go run ./hack/verified          # rewrite the table
//	go run ./hack/verified -check   # fail if that would change the document
//
// Either way it fails when a file has results that the suite of today cannot give.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/windows-machine-config/wmco/internal/host/hosttest"
)

const (
	document = "docs/verified.md"
	results  = "docs/verified"
)

var errStale = errors.New(document + " does not agree with the results in " + results +
	": run `make generate` and commit the result")

func main() {
	root := flag.String("root", ".", "`directory` of the repository")
	check := flag.Bool("check", false, "write nothing; fail if the document is out of date")
	flag.Parse()
	if err := run(*root, *check, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "verified:", err)
		os.Exit(1)
	}
}

// run reads the results below root and rewrites the document there, or only compares it.
func run(root string, check bool, out io.Writer) error {
	path := filepath.Join(root, filepath.FromSlash(document))
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	behaviors := append(hosttest.Behaviors(), hosttest.RebootBehaviors()...)
	columns, err := readColumns(os.DirFS(filepath.Join(root, filepath.FromSlash(results))), behaviors)
	if err != nil {
		return err
	}
	fresh, err := rewrite(old, render(behaviors, columns))
	if err != nil {
		return err
	}
	if !bytes.Equal(old, fresh) {
		if check {
			return errStale
		}
		if err := os.WriteFile(path, fresh, 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%s: %d behaviors of %d operations\n", document, len(behaviors), len(hosttest.Operations()))
	return err
}

// column is what is known of one environment.
type column struct {
	environment hosttest.Environment
	title       string
	report      hosttest.Report
	ran         bool // false: there is no report
}

// readColumns reads all reports that there are.
func readColumns(files fs.FS, behaviors []hosttest.Behavior) ([]column, error) {
	columns := []column{
		{environment: hosttest.Fake, title: "in memory"},
		{environment: hosttest.Wine, title: "Wine"},
		{environment: hosttest.Windows, title: "Windows"},
	}
	for i, c := range columns {
		name := string(c.environment) + ".json"
		report, err := hosttest.ReadReport(files, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = checkReport(report, c.environment, behaviors)
		}
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", results, name, err)
		}
		columns[i].report, columns[i].ran = report, true
	}
	return columns, nil
}

// possible returns the standings that the suite gives in an environment. A failure is listed for a real Windows only:
// elsewhere it is a mistake of this repository, to be mended and not to be documented.
func possible(where hosttest.Environment) []hosttest.Standing {
	switch where {
	case hosttest.Fake:
		return []hosttest.Standing{hosttest.Simulated}
	case hosttest.Wine:
		return []hosttest.Standing{hosttest.Proven, hosttest.StandIn, hosttest.FakeOnly, hosttest.Differs, hosttest.NotRun}
	}
	return []hosttest.Standing{hosttest.Proven, hosttest.NotRun, hosttest.Failed}
}
