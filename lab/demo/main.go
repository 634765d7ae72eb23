// Lab runs the embedded lab: the demo and the benchmarks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/windows-machine-config/wmco/lab/bench"
	"github.com/windows-machine-config/wmco/lab/bench/fleet"
	"github.com/windows-machine-config/wmco/lab/linuxns"
)

func main() {
	command := &cobra.Command{
		Use:           "lab",
		Short:         "A real control plane, the operator and simulated Windows hosts, on one machine and without root",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(newDemoCommand(), bench.Command(), fleet.Command(), newPrepareWineCommand())
	klog.SetLogger(logr.Discard()) // The demo already shows the causes of the API libraries' warnings.
	err := command.ExecuteContext(context.Background())
	if err == nil {
		return
	}
	var exit linuxns.ExitError
	if errors.As(err, &exit) {
		os.Exit(int(exit))
	}
	fmt.Fprintln(os.Stderr, "lab:", err)
	os.Exit(1)
}
