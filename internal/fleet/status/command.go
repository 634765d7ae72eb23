// Package status is the command that shows the status of the fleet, or of one host.
package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/fleet"
)

// pollInterval is the interval between requests to the cluster while a command watches or waits.
const pollInterval = 2 * time.Second

type command struct {
	*cmdutil.Access
	print         *genericclioptions.PrintFlags
	output        string
	allNamespaces bool
	noHeaders     bool
	watch         bool
	wait          string
	timeout       time.Duration
}

// New returns the command.
func New(a *cmdutil.Access) *cobra.Command {
	c := &command{Access: a, print: genericclioptions.NewPrintFlags("")}
	cobraCommand := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the status of Windows hosts and their next action",
		Long: `Show the Windows hosts of the cluster in a table, the causes of hosts that are not Ready, and the nodes that may be
disrupted now. With a name, show the details of one host: the conditions in chronological order, the last failure and the
latest events. Select a host by the name of the WindowsInstance or the Node, or by the address.`,
		Example: `  # All hosts
  kubectl windows status

  # One host
  kubectl windows status win-worker-1

  # Follow an upgrade
  kubectl windows status --watch

  # In a script: until all hosts are Ready, at most 20 minutes
  kubectl windows status --wait=Ready --timeout=20m`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error { return c.run(cmd.Context(), names) },
		ValidArgsFunction: func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(given) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return fleet.Completions(cmd.Context(), a.Client, a.Namespace()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags := cobraCommand.Flags()
	formats := append([]string{"wide"}, c.print.AllowedFormats()...)
	flags.StringVarP(&c.output, "output", "o", "", "output format. One of: "+strings.Join(formats, ", "))
	flags.BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "show the hosts of all namespaces")
	flags.BoolVar(&c.noHeaders, "no-headers", false, "print the table without its header line")
	flags.BoolVarP(&c.watch, "watch", "w", false, "watch for changes, until interrupted")
	flags.StringVar(&c.wait, "wait", "", "wait until this condition, such as Ready, is True for all selected hosts")
	flags.DurationVar(&c.timeout, "timeout", 10*time.Minute, "timeout of --wait")
	return cobraCommand
}

func (c *command) run(ctx context.Context, names []string) error {
	if c.watch && (c.wait != "" || c.isRawOutput()) {
		return errors.New("--watch cannot be used with --wait or with an --output other than wide")
	}
	reader, err := c.Client()
	if err != nil {
		return err
	}
	if c.wait != "" {
		if err := c.waitForCondition(ctx, reader, names); err != nil {
			return err
		}
	}
	if c.watch {
		return c.watchStatus(ctx, reader, names)
	}
	return c.printStatus(ctx, reader, names, c.Out)
}

// isRawOutput reports whether unmodified objects are printed.
func (c *command) isRawOutput() bool { return c.output != "" && c.output != "wide" }

func (c *command) searchNamespace() string {
	if c.allNamespaces {
		return ""
	}
	return c.Namespace()
}

// read reads the fleet, and the named instance; nil without a name.
func (c *command) read(ctx context.Context, reader client.Reader, names []string) (fleet.Fleet, *fleet.Instance, error) {
	f, err := fleet.Read(ctx, reader, c.searchNamespace())
	if err != nil || len(names) == 0 {
		return f, nil, err
	}
	instance, err := fleet.Find(f.Instances, names[0])
	return f, &instance, err
}

func (c *command) printStatus(ctx context.Context, reader client.Reader, names []string, out io.Writer) error {
	f, one, err := c.read(ctx, reader, names)
	if err != nil {
		return err
	}
	v := view{now: c.Clock.Now(), width: c.Width(), wide: c.output == "wide", noHeaders: c.noHeaders,
		namespaces: c.allNamespaces}
	if c.isRawOutput() {
		return c.printObjects(out, f, one)
	}
	if !c.allNamespaces {
		v.searchedNamespace = " in namespace " + c.Namespace()
		v.inactivityWarning = fleet.OperatorInactivityWarning(ctx, reader, c.Namespace(), len(f.Instances) > 0, v.now)
	}
	switch {
	case one == nil:
		return v.printTable(out, f)
	case v.wide:
		f.Instances = []fleet.Instance{*one}
		return v.printTable(out, f)
	}
	events, err := fleet.Events(ctx, reader, *one)
	if err != nil {
		return err
	}
	return v.printInstance(out, f, *one, events)
}

// printObjects prints the WindowsInstances as returned by the API server.
func (c *command) printObjects(out io.Writer, f fleet.Fleet, one *fleet.Instance) error {
	*c.print.OutputFormat = c.output
	printer, err := c.print.ToPrinter()
	if err != nil {
		return err
	}
	if one != nil {
		return printer.PrintObj(one.Raw, out)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WindowsInstanceList"))
	for _, i := range f.Instances {
		list.Items = append(list.Items, *i.Raw)
	}
	return printer.PrintObj(list, out)
}

// waitForCondition waits until a condition holds for the instances. The error lists the remaining instances.
func (c *command) waitForCondition(ctx context.Context, reader client.Reader, names []string) error {
	timeout := c.Clock.NewTimer(c.timeout)
	defer timeout.Stop()
	for {
		f, one, err := c.read(ctx, reader, names)
		if err != nil {
			return err
		}
		instances := f.Instances
		if one != nil {
			instances = []fleet.Instance{*one}
		}
		missing := unsatisfiedNames(instances, func(i fleet.Instance) bool { return fleet.IsTrue(i, c.wait) })
		if len(missing) == 0 && len(instances) > 0 {
			return nil
		}
		select {
		case <-c.Clock.After(pollInterval):
		case <-timeout.C():
			if len(instances) == 0 {
				return fmt.Errorf("after %s there are no Windows hosts", c.timeout)
			}
			return fmt.Errorf("after %s the condition %s is not True for %d of %d hosts: %s. See: kubectl windows status",
				c.timeout, c.wait, len(missing), len(instances), formatNames(missing))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
