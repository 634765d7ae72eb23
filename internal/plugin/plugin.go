// Package plugin is kubectl windows: the plugin of kubectl and oc for the administrators of Windows nodes.
package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/fleet/status"
	"github.com/windows-machine-config/wmco/internal/gather"
	"github.com/windows-machine-config/wmco/internal/plugin/actions"
	"github.com/windows-machine-config/wmco/internal/plugin/logs"
	"github.com/windows-machine-config/wmco/internal/plugin/machinesets"
	"github.com/windows-machine-config/wmco/internal/plugin/plan"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// New returns the root command.
func New(streams genericiooptions.IOStreams, clock clock.WithTicker, version string) *cobra.Command {
	a := cmdutil.New(streams, clock)
	root := &cobra.Command{
		Use:   "kubectl-windows",
		Short: "Manage the Windows nodes of a cluster",
		Long: `Manage the Windows nodes that the Windows Machine Config Operator configures. The program kubectl-windows on the PATH works as
kubectl windows and as oc windows.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: formatInvocation(os.Args[0])},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.Out)
	root.SetErr(a.ErrOut)
	root.SetIn(streams.In)
	a.AddFlags(root)
	operator := podexec.New(a)
	root.AddCommand(status.New(a), logs.New(a, operator), gather.New(a, operator), newUserDataCommand(a), machinesets.New(a))
	root.AddCommand(actions.New(a)...)
	root.AddCommand(plan.New(a, operator)...)
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.Out, version)
			return err
		},
	})
	return root
}

// formatInvocation returns the command line of a program: kubectl runs kubectl-windows as kubectl windows.
func formatInvocation(program string) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if before, after, is := strings.Cut(name, "-"); is && (before == "kubectl" || before == "oc") {
		return before + " " + after
	}
	return "kubectl windows"
}

// Arguments returns the arguments of a program. kubectl calls kubectl_complete-windows to complete a line;
// under that name, the program runs cobra's hidden command for completion.
func Arguments(called []string) []string {
	program, _, isCompletion := strings.Cut(strings.TrimSuffix(filepath.Base(called[0]), ".exe"), "_complete-")
	if isCompletion && (program == "kubectl" || program == "oc") {
		return append([]string{cobra.ShellCompRequestCmd}, called[1:]...)
	}
	return called[1:]
}
