// Package bench measures fleets of simulated hosts, and compares the figures with the budgets.
package bench

import (
	"context"
	"encoding/json"
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

	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/lab/bench/fleet"
)

// Result contains all measurements of one run.
type Result struct {
	Machine Machine        `json:"machine"`
	Fleets  []fleet.Result `json:"fleets"`
	Patches []Patch        `json:"patches,omitempty"`
	Budgets []Line         `json:"budgets"`
}

// Patch is the cost of a new version of one file for a host with another version.
type Patch struct {
	File       string `json:"file"` // "kubelet.exe"
	FileBytes  int64  `json:"fileBytes"`
	PatchBytes int64  `json:"patchBytes"`
}

type options struct {
	hosts                 []int
	idleDuration, timeout time.Duration
	agent, operator       string
	payload, results      string
	output                io.Writer
}

// Command returns the subcommand bench. If a budget is exceeded, it returns the summary of the run as error.
func Command() *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "bench",
		Short: "Measure the cost of configuring hosts, and compare it with the budgets",
		Long: "Measure the cost of configuring hosts, and compare it with the budgets.\n\n" +
			"Start it at the root of the repository after `make build`. The exit code is 1 if a count, a number of bytes or the operator's memory\n" +
			"exceeds its budget. Times depend on the machine and only warn.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.output = cmd.OutOrStdout()
			if err := o.validateFlags(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx)
		},
	}
	flags := command.Flags()
	flags.IntSliceVar(&o.hosts, "hosts", fleetSizes(), "the sizes of the fleets to measure")
	flags.DurationVar(&o.idleDuration, "idle", time.Minute, "how long the operator of a fleet is left alone")
	flags.DurationVar(&o.timeout, "limit", 15*time.Minute, "how long each scenario may take for a fleet")
	flags.StringVar(&o.operator, "operator", "build/wmco", "the operator")
	flags.StringVar(&o.agent, "agent", "build/wicd.exe", "the agent, built for Windows")
	flags.StringVar(&o.payload, "payload", "build/payload", "a payload of `make payload`, whose patches are compared with their budget")
	flags.StringVar(&o.results, "json", "build/bench/results.json", "file for all figures")
	return command
}

func (o *options) validateFlags() error {
	var faults []error
	for _, n := range o.hosts {
		if !slices.Contains(fleetSizes(), n) {
			faults = append(faults, fmt.Errorf("--hosts=%d: there are fleets of %v; `lab fleet` measures any other", n, fleetSizes()))
		}
	}
	if o.idleDuration <= 0 || o.timeout <= 0 {
		faults = append(faults, errors.New("--idle and --limit must be above zero"))
	}
	return errors.Join(faults...)
}

// run measures the fleets, writes and prints the figures, and returns the summary as an error if a budget is
// exceeded. After a failure, the figures measured so far are written.
func (o *options) run(ctx context.Context) (err error) {
	var result Result
	if result.Machine, err = thisMachine(); err != nil {
		return err
	}
	if result.Patches, err = patchesOf(o.payload); err != nil {
		return err
	}
	for _, each := range fleetRuns() {
		if err == nil && slices.Contains(o.hosts, each.hosts) {
			var measured fleet.Result
			if measured, err = each.measureFleet(ctx, o); len(measured.Phases) > 0 {
				result.Fleets = append(result.Fleets, measured)
			}
		}
	}
	result.Budgets = evaluateBudgets(result)
	data, encodeErr := json.MarshalIndent(result, "", "  ")
	if err := errors.Join(err, encodeErr, writeResultsFile(o.results, data), printTables(o.output, result)); err != nil {
		return err
	}
	if len(withVerdict(result.Budgets, Over)) > 0 {
		return errors.New(formatSummary(result.Budgets))
	}
	_, err = fmt.Fprintln(o.output, formatSummary(result.Budgets))
	return err
}

func writeResultsFile(path string, content []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, append(content, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// patchesOf returns the patches of a payload and the files that they create. A missing payload has no patches.
func patchesOf(dir string) (patches []Patch, err error) {
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	files, err := payload.Load(dir)
	if err != nil {
		return nil, err
	}
	manifest := files.Manifest()
	for _, patch := range manifest.Patches {
		for _, component := range manifest.Components {
			for _, file := range component.Files {
				if file.SHA256 == patch.To {
					patches = append(patches, Patch{File: file.Path, FileBytes: file.Size, PatchBytes: patch.Size})
				}
			}
		}
	}
	return patches, nil
}
