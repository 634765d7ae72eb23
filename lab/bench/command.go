package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
)

// options are the flags.
type options struct {
	hosts       []int
	latencies   []time.Duration
	quick       bool
	only        []string
	parts       []Part // of only, or all
	fleets      []int
	idle, limit time.Duration

	fleetIdle, fleetLimit time.Duration

	agent          string
	payload        string
	markdown, json string

	clock  clock.WithTicker
	output io.Writer
}

const (
	defaultMarkdown = "docs/benchmarks.md"
	// quickMarkdown is where a quick run writes: it must not take the place of a whole one's results.
	quickMarkdown = "build/benchmarks.md"
	// noPayload says that stand-ins are to be transferred.
	noPayload = "none"
)

// Command returns the subcommand bench. Its error, when a budget is passed, is the summary of the run, which is the
// last line in any case.
func Command() *cobra.Command {
	o := &options{clock: clock.RealClock{}}
	command := &cobra.Command{
		Use:   "bench",
		Short: "Measure what configuring hosts costs, and compare it with the budgets",
		Long: "Measure what configuring hosts costs, and compare it with the budgets.\n\n" +
			"Start it at the root of the repository after `make build`. The status is 1 when a count or a number of bytes is over its\n" +
			"budget; times only warn.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.output = cmd.OutOrStdout()
			flags := cmd.Flags()
			if err := o.complete(flags.Changed); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx)
		},
	}
	flags := command.Flags()
	flags.IntSliceVar(&o.hosts, "hosts", []int{1, 10, 50}, "numbers of hosts")
	flags.DurationSliceVar(&o.latencies, "latencies", []time.Duration{0, 20 * time.Millisecond, 50 * time.Millisecond},
		"round-trip times to the hosts")
	flags.BoolVar(&o.quick, "quick", false, "1 and 10 hosts, at 0 and 50 ms, and a short idle time; writes "+quickMarkdown)
	flags.StringSliceVar(&o.only, "only", nil, fmt.Sprintf("parts to measure, of %q; the others are taken from the file --json, if it has them; writes %s", allParts(), quickMarkdown))
	flags.IntSliceVar(&o.fleets, "fleets", []int{smallFleetHosts, 300, largeFleetHosts}, "numbers of hosts of fleets; most happens to the largest")
	flags.DurationVar(&o.fleetIdle, "fleet-idle", time.Minute, "how long the operator of the largest fleet is left alone")
	flags.DurationVar(&o.fleetLimit, "fleet-limit", 15*time.Minute, "how long each occasion may take for a fleet")
	flags.DurationVar(&o.idle, "idle", 20*time.Second, "how long the operator is left alone")
	flags.DurationVar(&o.limit, "limit", 5*time.Minute, "how long each number of hosts may take at each round trip")
	flags.StringVar(&o.agent, "agent", "build/wicd.exe", "the agent, built for Windows")
	flags.StringVar(&o.payload, "payload", "build/payload",
		"a payload of `make payload` to transfer; stand-ins are taken when there is none, or for "+noPayload)
	flags.StringVar(&o.markdown, "report", defaultMarkdown, "file for the tables")
	flags.StringVar(&o.json, "json", "build/bench.json", "file for all numbers")
	return command
}

// complete checks the flags and sets those that follow from --quick, unless they were given.
func (o *options) complete(given func(flag string) bool) error {
	if o.quick {
		for _, adjust := range []struct {
			flag string
			set  func()
		}{
			{"hosts", func() { o.hosts = []int{1, 10} }},
			{"latencies", func() { o.latencies = []time.Duration{0, distant} }},
			{"idle", func() { o.idle = 5 * time.Second }},
			{"report", func() { o.markdown = quickMarkdown }},
		} {
			if !given(adjust.flag) {
				adjust.set()
			}
		}
	}
	faults := o.chooseParts(given)
	for _, n := range o.hosts {
		if n < 1 || n > 250 {
			faults = append(faults, fmt.Errorf("--hosts=%d: it must be from 1 to 250", n))
		}
	}
	for _, latency := range o.latencies {
		if latency < 0 || latency > 10*time.Second {
			faults = append(faults, fmt.Errorf("--latencies=%s: it must be from 0 to 10s", latency))
		}
	}
	if len(o.hosts) == 0 || len(o.latencies) == 0 {
		faults = append(faults, errors.New("--hosts and --latencies must not be empty"))
	}
	if o.idle <= 0 || o.limit <= 0 {
		faults = append(faults, errors.New("--idle and --limit must be above zero"))
	}
	if _, err := os.Stat(o.agent); err != nil {
		faults = append(faults,
			fmt.Errorf("the agent is not built: %w: run `make build`, and start this at the root of the repository", err))
	}
	if given("payload") && o.payload != noPayload && !o.realPayload() {
		faults = append(faults, fmt.Errorf("--payload=%s: there is no payload: run `make payload`, or say %s",
			o.payload, noPayload))
	}
	return errors.Join(faults...)
}

// chooseParts sets the parts that are measured: a quick run leaves out those that take long.
func (o *options) chooseParts(given func(flag string) bool) (faults []error) {
	o.parts = allParts()
	if o.quick {
		o.parts = quickParts()
	}
	if len(o.only) > 0 {
		o.parts = nil
		if !given("report") {
			o.markdown = quickMarkdown
		}
	}
	for _, each := range o.only {
		if !slices.Contains(allParts(), Part(each)) {
			faults = append(faults, fmt.Errorf("--only=%s: there is no such part; there are %q", each, allParts()))
		}
		o.parts = append(o.parts, Part(each))
	}
	for _, n := range o.fleets {
		if n < 2 || n > largeFleetHosts {
			faults = append(faults, fmt.Errorf("--fleets=%d: it must be from 2 to %d", n, largeFleetHosts))
		}
	}
	if o.fleetIdle <= 0 || o.fleetLimit <= 0 {
		faults = append(faults, errors.New("--fleet-idle and --fleet-limit must be above zero"))
	}
	return faults
}

// measures reports whether a part is measured.
func (o *options) measures(part Part) bool { return slices.Contains(o.parts, part) }

// realPayload reports whether there is a payload of `make payload`.
func (o *options) realPayload() bool {
	_, err := os.Stat(filepath.Join(o.payload, "manifest.json"))
	return o.payload != noPayload && err == nil
}
