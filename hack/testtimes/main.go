// Command testtimes shows where the time of the last test runs went: `make test` and `make test-rest` leave in
// build/test what `go test` has said, and what was compiled for it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	dir := flag.String("dir", "build/test", "`directory` with the output of the test runs")
	most := flag.Int("most", 15, "`number` of packages and tests to show")
	flag.Parse()
	if err := run(os.DirFS(*dir), *most, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testtimes:", err)
		os.Exit(1)
	}
}

func run(dir fs.FS, most int, out io.Writer) error {
	found := false
	for _, part := range []string{"quick", "rest"} {
		tests, err := readTests(dir, part+".json")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		builds, err := readBuilds(dir, part+"-*.actions.json")
		if err != nil {
			return err
		}
		found = true
		if err := show(out, part, tests, builds, most); err != nil {
			return err
		}
	}
	if !found {
		return errors.New("there is no output of a test run: run `make test` first")
	}
	return nil
}

func show(out io.Writer, part string, tests *testRun, builds []build, most int) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "make test (%s): %s from the first package to the last, %s of tests in %d packages\n",
		part, seconds(tests.wall()), seconds(total(tests.packages)), len(tests.packages))
	fmt.Fprintln(table, "\nslowest packages\truns for")
	for _, each := range slowest(tests.packages, most) {
		fmt.Fprintf(table, "%s\t%s\n", short(each.name), seconds(each.took))
	}
	fmt.Fprintln(table, "\nslowest tests\truns for")
	for _, each := range slowest(tests.tests, most) {
		fmt.Fprintf(table, "%s\t%s\n", short(each.name), seconds(each.took))
	}
	fmt.Fprintln(table, "\ncompiled for\tpackages\tprocessor time\tlinked\tprocessor time\tof that, also compiled for others")
	for _, b := range builds {
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\t%d\n", b.name, len(b.compiled), seconds(b.compiling()), b.links,
			seconds(b.linking), again(b, builds))
	}
	fmt.Fprintln(table)
	return table.Flush()
}

// again returns how many packages that were compiled for b were compiled for another one, too.
func again(b build, all []build) (n int) {
	for name := range b.compiled {
		if slices.ContainsFunc(all, func(other build) bool {
			_, ok := other.compiled[name]
			return ok && other.name != b.name
		}) {
			n++
		}
	}
	return n
}

type timed struct {
	name string
	took time.Duration
}

// slowest returns what took longest, so many at the most.
func slowest(all map[string]time.Duration, most int) []timed {
	list := make([]timed, 0, len(all))
	for name, took := range all {
		list = append(list, timed{name, took})
	}
	slices.SortFunc(list, func(a, b timed) int {
		if a.took != b.took {
			return int(b.took - a.took)
		}
		return strings.Compare(a.name, b.name)
	})
	return list[:min(most, len(list))]
}

func total(all map[string]time.Duration) (sum time.Duration) {
	for _, took := range all {
		sum += took
	}
	return sum
}

func seconds(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// short leaves the path of the repository out.
func short(name string) string {
	return strings.TrimPrefix(name, "github.com/windows-machine-config/wmco/")
}
