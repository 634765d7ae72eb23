// Command style looks for phrases that made sentences of this project hard to read and must not come back. It reads the
// comments and strings of Go files and the prose of Markdown files below the folders it is given. American spelling is
// the linter's part (misspell). It also checks the subjects of new commits, which CONTRIBUTING.md describes.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	folders := os.Args[1:]
	if len(folders) == 0 {
		folders = []string{"."}
	}
	var findings []finding
	for _, folder := range folders {
		found, err := search(folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, "style:", err)
			os.Exit(1)
		}
		findings = append(findings, found...)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		fmt.Fprintf(os.Stderr, "style: found %d phrases that hack/style/phrases.go forbids: rephrase them\n", len(findings))
	}
	faults := faultySubjects(context.Background())
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, "style:", fault)
	}
	if len(findings)+len(faults) > 0 {
		os.Exit(1)
	}
}
