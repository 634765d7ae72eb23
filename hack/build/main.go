// Command build builds programs of this repository. While it compiles, one line shows its progress and the remaining
// time.
//
//	go run ./hack/build [-version 12.0.0] [-kubernetes v1.36.3] [-fips] program...
//
// Go's own cache knows what is out of date: with nothing to do, it says nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.version, "version", "", "the operator's `version`")
	flag.StringVar(&o.kubernetes, "kubernetes", "", "the `version` that the lab's control plane reports")
	flag.StringVar(&o.into, "into", "build", "`directory` to write the programs to")
	flag.BoolVar(&o.fips, "fips", false, "build operator and agent in FIPS mode")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: build [flags] program...\nThe programs are %s.\n",
			strings.Join(names(), ", "))
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

// run builds the named programs. Programs for one operating system share most of what is compiled for them, and two
// builds at once would compile it twice: they are built one after another. Programs for different operating systems
// share nothing, and are built at the same time.
func run(ctx context.Context, o options, wanted []string) error {
	programs, err := choose(wanted)
	if err != nil {
		return err
	}
	began := time.Now()
	progress := newProgress(newScreen(os.Stderr), func() (map[string]int64, error) { return outOfDate(ctx, programs) })
	lanes := map[string][]program{}
	for _, p := range programs {
		lanes[p.goos] = append(lanes[p.goos], p)
	}
	var group sync.WaitGroup
	failures := make(chan error, len(programs))
	for _, lane := range lanes {
		group.Go(func() {
			for _, p := range lane {
				if err := p.build(ctx, o, progress); err != nil {
					failures <- fmt.Errorf("%s: %w", p.name, err)
					return
				}
			}
		})
	}
	group.Wait()
	close(failures)
	if progress.finish() {
		fmt.Fprintf(os.Stderr, "built %s in %s\n", strings.Join(wanted, ", "), time.Since(began).Round(time.Second))
	}
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	return errors.Join(all...)
}
