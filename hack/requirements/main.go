// Command requirements maintains the tests for each requirement in docs/requirements.md.
//
// The document defines the identifiers and their meaning: requirements (R-), limits (L-), deviations (D-). The
// program writes the last two columns of the tables. A test cites an identifier in the doc comment or in the body.
// The line that the comment precedes or follows names the subtest. A citation outside of a test is an error, and so
// is a row with neither a test nor a reason for the missing test. Run the program from the root of the repository:
//
//	go run ./hack/requirements          # write the columns
//	go run ./hack/requirements -check   # fail, and list the changed tests, if that would change the document
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const document = "docs/requirements.md"

var errStale = errors.New("the citations in the tests differ from " + document +
	". Move the citation back; or, if it is right where it is, run `make generate` and commit the document, so that a reviewer sees it")

func main() {
	root := flag.String("root", ".", "`directory` of the repository")
	check := flag.Bool("check", false, "write nothing; fail if the document is out of date")
	flag.Parse()
	if err := run(*root, *check, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "requirements: %v\n", err)
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
	found, err := findCitations(os.DirFS(root))
	if err != nil {
		return err
	}
	fresh, changes, err := updateDocument(old, found)
	for _, c := range changes {
		fmt.Fprintln(out, c)
	}
	switch {
	case len(changes) > 0 && check:
		return errors.Join(errStale, err)
	case len(changes) > 0: // also if rules are violated: the changes show the citations
		return errors.Join(os.WriteFile(path, fresh, 0o644), err)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(out, "%s agrees with the citations in the tests\n", document)
	return err
}
