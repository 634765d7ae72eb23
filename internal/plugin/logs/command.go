// Package logs is the command that shows the logs of a node's services.
package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/internal/plugin/access"
	"github.com/windows-machine-config/wmco/internal/plugin/fleet"
	"github.com/windows-machine-config/wmco/internal/plugin/nodelogs"
)

type command struct {
	*access.Access
	follow bool
	tail   int
	since  time.Duration
}

// New returns the command.
func New(a *access.Access) *cobra.Command {
	c := &command{Access: a}
	cobraCommand := &cobra.Command{
		Use:   "logs NAME [SERVICE]",
		Short: "Show the log of a service of a node; without a service, list those that have a log",
		Long: `Show the end of the log of a Windows service, as the kubelet of the node serves it from C:\var\log. The agent is the
service windows-instance-config-daemon. A host whose kubelet does not answer keeps its logs there all the same.`,
		Example: `  # Which services have a log
  kubectl windows logs win-worker-1

  # The end of the kubelet's
  kubectl windows logs win-worker-1 kubelet

  # What it wrote in the last half hour
  kubectl windows logs win-worker-1 kubelet --since=30m

  # All of the agent's, and what it writes from now on
  kubectl windows logs win-worker-1 windows-instance-config-daemon --tail=-1 -f`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			if c.since < 0 {
				return fmt.Errorf("--since %s is in the future", -c.since)
			}
			if c.since > 0 && !cmd.Flags().Changed("tail") {
				c.tail = -1
			}
			return c.run(cmd.Context(), arguments)
		},
		ValidArgsFunction: func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(given) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return fleet.Completions(cmd.Context(), a.Client, a.Namespace()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cobraCommand.Flags().BoolVarP(&c.follow, "follow", "f", false, "go on with what is written, until interrupted")
	cobraCommand.Flags().IntVar(&c.tail, "tail", 200, "how many lines of the end to show; -1 shows all")
	cobraCommand.Flags().DurationVar(&c.since, "since", 0,
		"show what was written since so long ago, such as 30m; all of it, unless --tail is given")
	return cobraCommand
}

func (c *command) run(ctx context.Context, arguments []string) error {
	reader, err := c.Client()
	if err != nil {
		return err
	}
	instances, err := fleet.ReadInstances(ctx, reader, c.Namespace())
	if err != nil {
		return err
	}
	instance, err := fleet.Find(instances, arguments[0])
	if err != nil {
		return err
	}
	node := fleet.NodeName(instance)
	if node == "" {
		return fmt.Errorf("%s is not a node yet, so no kubelet serves its logs. Its status says how far it is: kubectl windows status %s",
			instance.Name, instance.Name)
	}
	config, err := c.Flags.ToRESTConfig()
	if err != nil {
		return err
	}
	f, err := nodelogs.Of(config, node)
	if err != nil {
		return err
	}
	if len(arguments) == 1 {
		err = c.services(ctx, f)
	} else {
		err = c.show(ctx, f, arguments[1])
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("logs of node %s: %w", node, err)
	}
	return nil
}

// services lists those that have a log.
func (c *command) services(ctx context.Context, f nodelogs.Files) error {
	services, err := f.Services(ctx)
	if err != nil {
		return err
	}
	for _, service := range services {
		if _, err := fmt.Fprintln(c.Out, service); err != nil {
			return err
		}
	}
	return nil
}

// show shows the log of a service.
func (c *command) show(ctx context.Context, f nodelogs.Files, service string) error {
	path, err := f.Current(ctx, service)
	if errors.Is(err, nodelogs.ErrNotThere) {
		return fmt.Errorf("service %s has no log. These have one: kubectl windows logs <name> (%w)", service, err)
	}
	if err != nil {
		return err
	}
	return c.print(ctx, f, path)
}
