// Command powershell checks PowerShell scripts as far as possible without PowerShell. It parses the scripts with
// the grammar of tree-sitter-powershell (grammar/README.md), and compares the commands with tables of Windows'
// commands. No script is run.
//
//	go run . ../../internal/userdata/testdata/*.ps1
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "powershell:", err)
		os.Exit(1)
	}
}

// run checks files, and returns an error if a file has a fault.
func run(ctx context.Context, files []string, out io.Writer) (err error) {
	if len(files) == 0 {
		return errors.New("name the scripts to check")
	}
	p, err := newParser(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	var faults []error
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found, err := p.check(ctx, content)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, f := range found {
			faults = append(faults, fmt.Errorf("%s:%d: %s", file, f.line, f.text))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d PowerShell scripts are valid\n", len(files))
	return err
}
