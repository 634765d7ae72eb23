// Package logs is the command that shows the logs of the services of a host.
package logs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/nodelogs"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

type command struct {
	*cmdutil.Access
	operator podexec.Runner
	// kubelet returns the kubelet of a node, which serves its logs.
	kubelet func(node string) (kubelet, error)
	events  bool
	follow  bool
	tail    int
	since   time.Duration
}

// kubelet serves the logs of a node, and the agent's entries in Windows' event log.
type kubelet interface {
	logprinter.Source
	Events(ctx context.Context, source string, most int) ([]byte, error)
}

// New returns the command. The operator reads the logs that no kubelet serves.
func New(a *cmdutil.Access, operator podexec.Runner) *cobra.Command {
	c := &command{Access: a, operator: operator}
	c.kubelet = c.kubeletFiles
	return c.newCobraCommand()
}

func (c *command) newCobraCommand() *cobra.Command {
	cobraCommand := &cobra.Command{
		Use:   "logs NAME [SERVICE]",
		Short: "Show the log of a service of a host, or Windows' event log; without a service, list the services with a log",
		Long: `Show the end of the log of a Windows service, from C:\var\log on the host. The agent is the service
windows-instance-config-daemon. The kubelet of the node serves the logs. If the kubelet does not answer, or if the host never became
a node, the operator reads the logs from the host over SSH: a command runs in the operator's pod.

With --events, show the entries of Windows' logs Application and System about the node, or about one service: events of the agent,
of services that end, of restarts, disks, the network and the clock. Use --since for events from before the last week. The agent
reads the events; if the host lacks the agent, a copy is installed and deleted again. If the operator cannot reach the host, the
kubelet shows the events of one source in the log Application: Kubernetes does not serve the log System.`,
		Example: `  # Which services have a log
  kubectl windows logs win-worker-1

  # The end of the kubelet's log
  kubectl windows logs win-worker-1 kubelet

  # The kubelet's log of the last half hour
  kubectl windows logs win-worker-1 kubelet --since=30m

  # The complete log of the agent, followed by new lines
  kubectl windows logs win-worker-1 windows-instance-config-daemon --tail=-1 -f

  # Events about services and restarts since yesterday
  kubectl windows logs win-worker-1 --events --since=24h

  # Events about the kubelet
  kubectl windows logs win-worker-1 kubelet --events`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			if c.since < 0 {
				return fmt.Errorf("invalid --since -%s: use a positive duration", -c.since)
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
			return fleet.Completions(cmd.Context(), c.Client, c.Namespace()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cobraCommand.Flags().BoolVarP(&c.follow, "follow", "f", false, "stream the logs until interrupted")
	cobraCommand.Flags().BoolVar(&c.events, "events", false, "show Windows' event log instead of the log of a service")
	cobraCommand.Flags().IntVar(&c.tail, "tail", 200, "lines of recent log to show; -1 shows all")
	cobraCommand.Flags().DurationVar(&c.since, "since", 0,
		"show logs newer than a duration like 30m; by default, all logs unless --tail is given")
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
	return c.showLogs(ctx, instance, arguments[1:])
}

// kubeletTimeout is the timeout for the list of services with logs from a kubelet. The API server waits longer
// for a node that is off.
const kubeletTimeout = 15 * time.Second

// eventsTimeout is the timeout for events from a kubelet: the kubelet starts PowerShell twice, and waits no
// longer itself.
const eventsTimeout = 35 * time.Second

// showLogs shows the log of a service of a host, or its events, or lists its services.
func (c *command) showLogs(ctx context.Context, instance fleet.Instance, service []string) error {
	node := fleet.NodeName(instance)
	if c.events {
		return c.showEvents(ctx, instance, node, service)
	}
	if node == "" {
		fmt.Fprintf(c.ErrOut, "%s is not a node yet: the operator reads its logs over SSH.\n", instance.Name)
		return c.runOperatorLogs(ctx, instance, service)
	}
	source, err := c.kubelet(node)
	if err != nil {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, kubeletTimeout)
	_, err = source.Services(asked)
	cancel()
	if cannotServeLogs(ctx, err) {
		fmt.Fprintf(c.ErrOut, "The kubelet of node %s does not serve logs (%v): the operator reads them over SSH.\n", node, err)
		return c.runOperatorLogs(ctx, instance, service)
	}
	if err == nil {
		err = c.printLogs(ctx, source, service)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("logs of node %s: %w", node, err)
	}
	return nil
}

func (c *command) kubeletFiles(node string) (kubelet, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	return nodelogs.Of(config, node)
}

// cannotServeLogs reports whether an error means that the kubelet does not serve logs. An interruption or a missing
// right does not count.
func cannotServeLogs(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	var refused *nodelogs.StatusError
	return !errors.As(err, &refused) || refused.Code != http.StatusForbidden && refused.Code != http.StatusUnauthorized
}

func (c *command) printLogs(ctx context.Context, source logprinter.Source, service []string) error {
	viewer := logprinter.Viewer{Out: c.Out, ErrOut: c.ErrOut, Clock: c.Clock, Follow: c.follow, Tail: c.tail, Since: c.since}
	if len(service) == 0 {
		return viewer.Services(ctx, source)
	}
	return viewer.Show(ctx, source, service[0])
}

// runOperatorLogs runs the operator's command, which reads the logs from the host.
func (c *command) runOperatorLogs(ctx context.Context, instance fleet.Instance, service []string) error {
	arguments := append([]string{"logs", instance.Name}, service...)
	if c.events {
		arguments = append(arguments, "--events")
	}
	arguments = append(arguments, fmt.Sprintf("--tail=%d", c.tail), fmt.Sprintf("--since=%s", c.since), fmt.Sprintf("--follow=%t", c.follow))
	status, err := c.operator.Run(ctx, arguments, podexec.Streams{Out: c.Out, ErrOut: c.ErrOut})
	switch {
	case ctx.Err() != nil && c.follow:
		return nil // an interrupted command has succeeded
	case err != nil:
		return err
	case status != 0:
		return podexec.ExitStatus(status)
	}
	return nil
}
