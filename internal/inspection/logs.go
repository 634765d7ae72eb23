package inspection

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/keys"
	"github.com/windows-machine-config/wmco/internal/inspection/hostlogs"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/plugin/logview"
)

func logsCommand(configure func() (operator.Config, error)) *cobra.Command {
	o, viewer := &options{}, logview.Viewer{}
	command := &cobra.Command{
		Use: "logs NAME [SERVICE]", Short: "Show the log of a service of a host, read over SSH; without a service, list those that have one",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, arguments []string) error {
			ctx, cancel := o.watched(command)
			defer cancel()
			i, err := inspectorOf(configure)
			if err != nil {
				return err
			}
			viewer.Out, viewer.ErrOut, viewer.Clock = command.OutOrStdout(), command.ErrOrStderr(), i.Clock
			return i.logs(ctx, arguments[0], func(s logview.Source) error {
				if len(arguments) == 1 {
					return viewer.Services(ctx, s)
				}
				return viewer.Show(ctx, s, arguments[1])
			})
		},
	}
	o.addAttached(command)
	command.Flags().BoolVarP(&viewer.Follow, "follow", "f", false, "go on with what is written, until interrupted")
	command.Flags().IntVar(&viewer.Tail, "tail", 200, "how many lines of the end to show; -1 shows all")
	command.Flags().DurationVar(&viewer.Since, "since", 0, "show what was written since so long ago")
	return command
}

// logs shows logs of an instance's host.
func (i *inspector) logs(ctx context.Context, name string, show func(logview.Source) error) error {
	chosen, err := i.chosen(ctx, []string{name})
	if err != nil {
		return err
	}
	key, err := keys.Read(ctx, i.reader, i.Namespace)
	if err != nil {
		return fmt.Errorf("%w. %s", err, keys.Remedy(i.Namespace))
	}
	known := &nodespec.Cluster{}
	if facts, _, err := cluster.Read(ctx, i.reader, i.Namespace); err == nil {
		known = &facts // it tells which addresses are the cluster's own
	}
	target, err := i.target(ctx, &chosen[0].WindowsInstance, key, known)
	if err != nil {
		return err
	}
	stay, err := i.visitor.Begin(ctx, target)
	if err != nil {
		return err
	}
	return errors.Join(show(hostlogs.Files{Host: stay}), stay.Leave(ctx))
}
