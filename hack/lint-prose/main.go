// Command lint-prose counts words and names that AGENTS.md advises against: private idiom in comments, names,
// strings and documents. The counts of a directory must not increase. limits.json contains the remaining counts
// that must be removed. The command also checks the subjects of new commits, which CONTRIBUTING.md describes.
//
//	lint-prose           fails for each count that has increased
//	lint-prose -update   lowers the limits to the current counts, and refuses to raise their sum
//	lint-prose -report   prints the counts per 10,000 words, beside the counts of comparable projects
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

// limitsFile is the file with the limits, relative to the root of the checkout.
const limitsFile = "hack/lint-prose/limits.json"

func main() {
	update := flag.Bool("update", false, "lower the limits to the present counts")
	report := flag.Bool("report", false, "print the counts of all directories together")
	flag.Parse()
	if err := run(*update, *report); err != nil {
		fmt.Fprintln(os.Stderr, "lint-prose:", err)
		os.Exit(1)
	}
}

func run(update, report bool) error {
	counts, err := countTree(".")
	if err != nil {
		return err
	}
	if report {
		printReport(os.Stdout, counts)
		return nil
	}
	limits, err := readLimits(limitsFile)
	if err != nil {
		return err
	}
	if update {
		return updateLimits(limitsFile, limits, counts)
	}
	failures := append(compareCounts(limits, counts), checkSubjects(context.Background())...)
	for _, failure := range failures {
		fmt.Fprintln(os.Stderr, "lint-prose:", failure)
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d failures; AGENTS.md has the rules", len(failures))
	}
	return nil
}
