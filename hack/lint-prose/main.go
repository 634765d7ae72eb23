// Command lint-prose counts words and names that AGENTS.md advises against: private idiom in comments, names,
// strings and documents. The counts of a directory must not increase. limits.json contains the remaining counts
// that must be removed. The command also checks that names in comments exist, except for those in names.txt, and
// the subjects of new commits, which CONTRIBUTING.md describes.
//
//	lint-prose           fails for each count that has increased, each unknown name and each faulty subject
//	lint-prose -update   lowers the limits to the current counts, and refuses to raise their sum
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
)

// The files with the limits and with the names of other projects, relative to the root of the checkout.
const (
	limitsFile = "hack/lint-prose/limits.json"
	namesFile  = "hack/lint-prose/names.txt"
)

func main() {
	update := flag.Bool("update", false, "lower the limits to the current counts")
	flag.Parse()
	if err := run(*update); err != nil {
		fmt.Fprintln(os.Stderr, "lint-prose:", err)
		os.Exit(1)
	}
}

func run(update bool) error {
	all, err := readSources(".")
	if err != nil {
		return err
	}
	counts := countTree(all)
	limits, err := readLimits(limitsFile)
	if err != nil {
		return err
	}
	if update {
		return updateLimits(limitsFile, limits, counts)
	}
	allowed, err := os.ReadFile(namesFile)
	if err != nil {
		return err
	}
	failures := slices.Concat(compareCounts(limits, counts), checkNames(all, string(allowed)), checkSubjects(context.Background()))
	for _, failure := range failures {
		fmt.Fprintln(os.Stderr, "lint-prose:", failure)
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d failures; AGENTS.md has the rules", len(failures))
	}
	return nil
}
