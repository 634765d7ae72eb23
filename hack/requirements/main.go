// Command requirements keeps the last column of docs/requirements.md true: which tests cite which requirement.
//
// The document is the source of the identifiers and their sentences; the program only rewrites the column. A test cites a
// requirement by naming its identifier in a comment, inside or above the test function that proves it. Run it from the
// root of the repository:
//
//	go run ./hack/requirements          # rewrite the column
//	go run ./hack/requirements -check   # fail if that would change the document
//
// Either way it fails when a test cites a requirement that the document does not have.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const document = "docs/requirements.md"

var errStale = errors.New(document + " does not say which tests cite what: run `make generate` and commit the result")

func main() {
	root := flag.String("root", ".", "`directory` of the repository")
	check := flag.Bool("check", false, "change nothing, fail if the document is out of date")
	flag.Parse()
	if err := run(*root, *check, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "requirements:", err)
		os.Exit(1)
	}
}

// run reads the tests below root and rewrites the document there, or only compares it.
func run(root string, check bool, out io.Writer) error {
	path := filepath.Join(root, filepath.FromSlash(document))
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	citations, err := findCitations(os.DirFS(root))
	if err != nil {
		return err
	}
	fresh, err := rewrite(old, citations)
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
	_, err = fmt.Fprintf(out, "%s: %d requirements are cited by tests\n", document, len(citations))
	return err
}
