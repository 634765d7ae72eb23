package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/lab/linuxns"
)

// maxHosts is the number of addresses in the lab's network.
const maxHosts = 1000

// hostsGCPercent is the GOGC value of the process of the hosts: its garbage collection is not measured and
// takes processor time from other processes. The operator has Go's default.
const hostsGCPercent = 200

// Command returns the subcommand fleet.
func Command() *cobra.Command {
	var o Options
	var scenarios []string
	var file, controlPlane string
	command := &cobra.Command{
		Use:   "fleet",
		Short: "Measure one number of hosts at once, with the operator in a process of its own",
		Long: "Measure one number of hosts at once, with the operator in a process of its own. `bench` runs it for several numbers.\n\n" +
			"Start it at the root of the repository after `make build`. It needs a network namespace, as the demo does.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			o.Scenarios = nil
			for _, each := range scenarios {
				o.Scenarios = append(o.Scenarios, Scenario(each))
			}
			if err := o.completeFlags(&controlPlane); err != nil {
				return err
			}
			code, err := linuxns.Main(networkConfig(o.Hosts, controlPlane), func(ctx context.Context, e *linuxns.Environment) int {
				return o.measureInNetwork(ctx, e, file)
			})
			if err == nil && code != 0 {
				err = linuxns.ExitError(code)
			}
			return err
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.Hosts, "hosts", 20, "how many hosts")
	flags.StringSliceVar(&scenarios, "scenarios", []string{string(Idle), string(Restart)}, fmt.Sprintf("what happens to them once they are Ready, in this order: of %q", AllScenarios()))
	flags.StringVar(&o.Operator, "operator", "build/wmco", "the operator")
	flags.StringVar(&o.Agent, "agent", "build/wicd.exe", "the agent, built for Windows")
	flags.StringVar(&controlPlane, "control-plane", "build/lab-controlplane", "the lab's control plane")
	flags.IntVar(&o.SizePercent, "payload-percent", 100, "size of the programs for hosts next to the lab's usual one")
	flags.DurationVar(&o.RoundTrip, "round-trip", 0, "the time of a packet to a host and back")
	flags.IntVar(&o.MaxUnavailable, "max-unavailable", 10, "how many nodes an upgrade may disturb at a time")
	flags.DurationVar(&o.Timeout, "limit", 15*time.Minute, "how long each scenario may take")
	flags.DurationVar(&o.IdleDuration, "idle", time.Minute, "how long nothing happens on the scenario idle")
	flags.StringVar(&o.MemoryLimit, "operator-memory-limit", "", "GOMEMLIMIT of the operator, such as 850MiB; that of the Deployment, if it is empty")
	flags.BoolVar(&o.Inside, "inside", false, "run the operator in the process of the hosts, so that a profile shows it, too")
	flags.StringVar(&o.Profile, "cpu-profile", "", "file for a profile of the process of the hosts, from when they are listed on; go tool pprof shows it")
	flags.StringVar(&o.Log, "operator-log", "build/bench/operator.log", "file for the operator's log")
	flags.StringVar(&file, "json", "build/bench/fleet.json", "file for all numbers")
	return command
}

// completeFlags validates the flags and makes paths absolute.
func (o *Options) completeFlags(controlPlane *string) error {
	var faults []error
	if o.Hosts < 1 || o.Hosts > maxHosts {
		faults = append(faults, fmt.Errorf("--hosts=%d: it must be from 1 to %d", o.Hosts, maxHosts))
	}
	for _, scenario := range o.Scenarios {
		if !slices.Contains(AllScenarios(), scenario) {
			faults = append(faults, fmt.Errorf("--scenarios=%s: there is no such scenario; there are %q", scenario, AllScenarios()))
		}
	}
	if slices.ContainsFunc(o.Scenarios, func(each Scenario) bool { return each == SamePrograms || each == Upgrade }) &&
		!slices.IsSortedFunc(o.Scenarios, func(a, b Scenario) int { return slices.Index(AllScenarios(), a) - slices.Index(AllScenarios(), b) }) {
		faults = append(faults, errors.New("--scenarios: other versions of the operator come last, for they run in this process"))
	}
	if o.Inside && slices.Contains(o.Scenarios, Restart) {
		faults = append(faults, errors.New("--inside: an operator that is no process of its own cannot be restarted: leave restart out of --scenarios"))
	}
	if o.SizePercent < 1 || o.MaxUnavailable < 1 || o.Timeout <= 0 || o.IdleDuration <= 0 || o.RoundTrip < 0 {
		faults = append(faults, errors.New("--payload-percent, --max-unavailable, --limit and --idle must be above zero, --round-trip at least zero"))
	}
	for _, path := range []*string{&o.Operator, &o.Agent, controlPlane, &o.Log} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		*path = absolute
	}
	for _, path := range []string{o.Operator, o.Agent, *controlPlane} {
		if _, err := os.Stat(path); err != nil {
			faults = append(faults, fmt.Errorf("%w: run `make build`, and start this at the root of the repository", err))
		}
	}
	return errors.Join(faults...)
}

// measureInNetwork measures in the lab's network and writes the measurements, also if the run fails early.
func (o *Options) measureInNetwork(ctx context.Context, environment *linuxns.Environment, file string) (exitCode int) {
	debug.SetGCPercent(hostsGCPercent)
	o.Dir, o.Progress = environment.Dir, func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	var result Result
	err := os.MkdirAll(filepath.Dir(o.Log), 0o755)
	if err == nil {
		err = os.RemoveAll(o.Log)
	}
	if err == nil {
		result, err = Run(ctx, *o)
	}
	if len(result.Phases) > 0 {
		err = errors.Join(err, write(file, result))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	return 0
}

func write(file string, result Result) error {
	data, err := json.MarshalIndent(result, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = os.WriteFile(file, append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write what was measured: %w", err)
	}
	return nil
}
