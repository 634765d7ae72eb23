// Command defects seeds small defects, one at a time, and verifies that a named test fails for each. `make defects`
// runs the command:
//
//	go run ./hack/defects                    # all defects
//	go run ./hack/defects -run 'R-095|claim' # defects with a matching row
//	go run ./hack/defects -list
//
// If the test still passes, the defect has SURVIVED, and a test is missing. The rows are in directory table, where
// the first file explains how to add a row.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

var errNotAllCaught = errors.New("not every defect was caught")

func main() {
	root := flag.String("root", ".", "`directory` of the repository")
	pattern := flag.String("run", "",
		"seed only the defects whose sentence, requirement, file or tests match the `regexp`")
	list := flag.Bool("list", false, "list the defects and seed none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *root, *pattern, *list); err != nil {
		fmt.Fprintln(os.Stderr, "defects:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, root, pattern string, list bool) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	chosen, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	table, err := readTable(filepath.Join(root, "hack", "defects", "table"))
	if err != nil {
		return err
	}
	rows := table.matchingRows(chosen)
	if len(rows) == 0 {
		return fmt.Errorf("no row matches %q", pattern)
	}
	if list {
		for _, r := range rows {
			fmt.Fprintf(out, "%s: %s (%s)\n", r.File, r.Defect, r.Breaks)
		}
		return nil
	}
	start := time.Now()
	counts := seedAll(ctx, out, newSeeder(root), rows)
	fmt.Fprintf(out, "%d defects: %d caught, %d survived, %d rows broken, in %s\n",
		len(rows), counts[caught], counts[survived], counts[broken], time.Since(start).Round(time.Second))
	if counts[caught] != len(rows) {
		return errNotAllCaught
	}
	return ctx.Err()
}

// maxConcurrentDefects is the number of defects that are seeded at a time. A test mostly waits for the linker, which
// uses two processors.
const maxConcurrentDefects = 2

// seedAll first runs all tests of the rows without a defect, and then seeds the defects.
func seedAll(ctx context.Context, out io.Writer, s *seeder, rows []row) map[verdict]int {
	baseline := map[string]testRun{}
	for name, tests := range testsByPackage(rows) {
		baseline[name] = s.runTests(ctx, s.root, name, tests, "")
	}
	counts := map[verdict]int{}
	var mutex sync.Mutex
	var group sync.WaitGroup
	jobs := make(chan row)
	for range maxConcurrentDefects {
		group.Go(func() {
			for r := range jobs {
				start := time.Now()
				verdict, reason := s.seedDefect(ctx, r, baseline[r.Package])
				mutex.Lock()
				counts[verdict]++
				fmt.Fprintf(out, "%-8s %s (%s)%s, %.1fs\n", verdict, r.Defect, r.Breaks, reason, time.Since(start).Seconds())
				mutex.Unlock()
			}
		})
	}
	for _, r := range rows {
		if ctx.Err() != nil {
			break
		}
		jobs <- r
	}
	close(jobs)
	group.Wait()
	return counts
}
