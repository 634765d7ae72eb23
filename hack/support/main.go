// Command support keeps docs/support.md true: which clusters, platforms and Windows versions are supported. The tables
// there come from the ones that the operator decides by, in internal/policy/support. Run it from the root of the
// repository:
//
//	go run ./hack/support          # rewrite the tables
//	go run ./hack/support -check   # fail if that would change the document
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/windows-machine-config/wmco/internal/policy/support"
)

const document = "docs/support.md"

var errStale = errors.New(document +
	" does not agree with internal/policy/support: run `make generate` and commit the result")

func main() {
	root := flag.String("root", ".", "`directory` of the repository")
	check := flag.Bool("check", false, "write nothing; fail if the document is out of date")
	flag.Parse()
	if err := run(*root, *check, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "support:", err)
		os.Exit(1)
	}
}

// run rewrites the document below root, or only compares it.
func run(root string, check bool, out io.Writer) error {
	path := filepath.Join(root, filepath.FromSlash(document))
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	platforms, releases := support.Platforms(), support.WindowsReleases()
	fresh, err := rewrite(old, render(platforms, releases, support.ReleaseLines()))
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
	_, err = fmt.Fprintf(out, "%s: %d platforms, %d Windows releases\n", document, len(platforms), len(releases))
	return err
}
