// Command vulncheck looks whether the programs of this repository call anything with a known vulnerability. `make
// vulncheck` runs it.
//
// govulncheck finds the calls; GOVULNDB names the database, else it is Go's own. Without an answer from it, as on a
// machine without network, the command says that nothing was checked and passes: nobody could fix that there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// target is a program as it is built.
type target struct {
	name, goos, pattern string
}

// targets are what runs with rights: in a cluster, on a host, and, as root, the lab.
var targets = []target{
	{"the operator", "linux", "./cmd/wmco"},
	{"the agent", "windows", "./cmd/wicd"},
	{"the lab", "linux", "./lab/demo"},
}

// answerLimit is how long a database may take to say how old it is.
const answerLimit = 10 * time.Second

func main() {
	scanner := flag.String("govulncheck", "build/tools/govulncheck", "the program govulncheck")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *scanner, os.Getenv("GOVULNDB")); err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		stop()
		os.Exit(1)
	}
}

// run checks all targets with the database, empty for Go's own.
func run(ctx context.Context, out io.Writer, scanner, named string) error {
	db, err := choose(ctx, named, publicDatabase)
	var silent *silentError
	if errors.As(err, &silent) {
		fmt.Fprintf(out, "NOT CHECKED FOR KNOWN VULNERABILITIES: %v\n"+
			"Run `make vulncheck` where the database can be reached, or set GOVULNDB to a copy of the database: https://... or file:///...\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "vulnerability database %s of %s\n", db.url, db.modified.Format(time.DateOnly))
	return check(ctx, out, scan{scanner: scanner, directory: ".", database: db.url}, targets, exceptions)
}

// check scans the targets and tells what is found. An error means that something is vulnerable, or could not be
// checked.
func check(ctx context.Context, out io.Writer, s scan, targets []target, exceptions map[string]string) error {
	var errs []error
	used := map[string]bool{}
	for _, t := range targets {
		found, err := s.run(ctx, t)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s (%s): %w", t.name, t.pattern, err))
			continue
		}
		bad := 0
		for _, each := range found {
			reason, excepted := exceptions[each.id]
			used[each.id] = used[each.id] || excepted
			if excepted {
				fmt.Fprintf(out, "%s: %s is excepted: %s\n", t.name, each.id, reason)
				continue
			}
			bad++
			fmt.Fprintf(out, "%s: %s\n", t.name, each)
		}
		if bad > 0 {
			errs = append(errs, fmt.Errorf("%s (%s) calls code with %d known vulnerabilities: update the modules, or enter a reason in hack/vulncheck/exceptions.go",
				t.name, t.pattern, bad))
			continue
		}
		fmt.Fprintf(out, "%s: calls no other code with known vulnerabilities\n", t.name)
	}
	for id := range exceptions {
		if !used[id] {
			fmt.Fprintf(out, "the exception for %s is no longer needed: remove it from hack/vulncheck/exceptions.go\n",
				id)
		}
	}
	return errors.Join(errs...)
}
