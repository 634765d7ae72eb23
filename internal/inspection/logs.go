package inspection

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/inspection/hostlogs"
	"github.com/windows-machine-config/wmco/internal/inspection/hostsession"
	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
)

func logsCommand(configure func() (operator.Config, error)) *cobra.Command {
	o, viewer, events := &options{}, logprinter.Viewer{}, false
	command := &cobra.Command{
		Use: "logs NAME [SERVICE]", Short: "Show the log of a service of a host, read over SSH; without a service, list those that have one",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, arguments []string) error {
			service := strings.Join(arguments[1:], "")
			return o.runInspector(command, configure, func(ctx context.Context, i *inspector) error {
				viewer.Out, viewer.ErrOut, viewer.Clock = command.OutOrStdout(), command.ErrOrStderr(), i.Clock
				return i.showLogs(ctx, arguments[0], func(ours bool, at *hostsession.Session) error {
					switch {
					case events:
						if err := at.EnsureAgent(ctx, ours); err != nil {
							return err
						}
						return hostlogs.EventViewer{Viewer: viewer, Host: at, Service: service}.Show(ctx)
					case service == "":
						return viewer.Services(ctx, hostlogs.Files{Host: at})
					}
					return viewer.Show(ctx, hostlogs.Files{Host: at}, service)
				})
			})
		},
	}
	o.addAttached(command)
	command.Flags().BoolVarP(&viewer.Follow, "follow", "f", false, "stream the logs until interrupted")
	command.Flags().IntVar(&viewer.Tail, "tail", 200, "lines of recent log to show; -1 shows all")
	command.Flags().DurationVar(&viewer.Since, "since", 0, "show logs newer than a duration")
	command.Flags().BoolVar(&events, "events", false, "show entries of Windows' event log about the node")
	return command
}

// showLogs shows logs of an instance's host. ours is true if an agent has restricted its directory to administrators.
func (i *inspector) showLogs(ctx context.Context, name string, show func(ours bool, at *hostsession.Session) error) error {
	chosen, err := i.selectInstances(ctx, []string{name})
	if err != nil {
		return err
	}
	key, err := i.readKey(ctx)
	if err != nil {
		return err
	}
	known := &nodespec.Cluster{}
	if facts, _, err := cluster.Read(ctx, i.reader, i.Namespace, nodespec.ServingCertificate{}); err == nil {
		known = &facts // defines the addresses of the cluster itself
	}
	target, err := i.newTarget(ctx, &chosen[0].WindowsInstance, key, known)
	if err != nil {
		return err
	}
	stay, err := i.connector.Connect(ctx, target)
	if err != nil {
		return err
	}
	return errors.Join(show(chosen[0].Status.Host != nil, stay), stay.Finish(ctx))
}
