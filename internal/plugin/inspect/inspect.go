// Package inspect has the commands that the operator answers, since only it can ask hosts: plan and diagnose.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// found is the status of a plan with changes, and of a diagnosis with a failure.
const found podexec.ExitStatus = 2

// asker asks the operator.
type asker struct {
	*cmdutil.Access
	operator podexec.Runner
	output   string
	timeout  time.Duration
}

// New returns the commands.
func New(a *cmdutil.Access, operator podexec.Runner) []*cobra.Command {
	return []*cobra.Command{planCommand(&asker{Access: a, operator: operator}), diagnoseCommand(&asker{Access: a, operator: operator})}
}

func planCommand(q *asker) *cobra.Command {
	all := false
	c := &cobra.Command{
		Use: "plan NAME... | --all", Short: "Show what the operator would change on hosts now",
		Long: `Ask the operator what it would change on hosts now: the steps with their reasons, what is sent, whether pods feel a step, and
then which pods are evicted and which PodDisruptionBudget holds them. Nothing is changed. The operator compares the host over
a connection of its own, beside its other work. A command runs in the operator's pod for that.

The exit status is 0 if nothing would be changed, 2 if something would, and 1 if that is not known of a host.`,
		Example: `  kubectl windows plan win-worker-1

  # Of all hosts, for a program
  kubectl windows plan --all -o json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			switch {
			case all && len(names) > 0:
				return errors.New("give either names or --all")
			case all:
				names = []string{"--all"}
			case len(names) == 0:
				return errors.New("give the names of hosts, or --all")
			}
			return q.ask(cmd.Context(), append([]string{"plan"}, names...))
		},
		ValidArgsFunction: q.complete,
	}
	c.Flags().BoolVar(&all, "all", false, "all hosts")
	q.addFlags(c)
	return c
}

func diagnoseCommand(q *asker) *cobra.Command {
	user := ""
	c := &cobra.Command{
		Use: "diagnose NAME|ADDRESS", Short: "Show what keeps a host from being a node",
		Long: `Have the operator look at a host, also one that never joined or is in no list: whether its name resolves, port 22 and an
SSH server answer, the host key is the right one, the operator can log in, as an administrator, and its agent runs; whether
Windows has a supported build and the features, reaches the API server, has the right time and enough disk, and whether the
ports of a node are right. Each is passed, failed with what to do about it, or not reached. A copy of the agent that the host
lacks is brought, and deleted again; nothing else is changed, and no host key is pinned.

The exit status is 0 if nothing has failed, 2 if something has, and 1 if the host could not be looked at, or if something that
was brought there is left. What was not reached only because the cluster's settings are not known counts as not failed.`,
		Example: `  kubectl windows diagnose win-worker-1

  # A host that is in no list yet
  kubectl windows diagnose 10.0.0.17 --username=Administrator`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			command := []string{"diagnose", arguments[0]}
			if user != "" {
				command = append(command, "--username="+user)
			}
			return q.ask(cmd.Context(), command)
		},
		ValidArgsFunction: q.complete,
	}
	c.Flags().StringVar(&user, "username", "", "user to log in as (default: that of the list of hosts, or Administrator)")
	q.addFlags(c)
	return c
}

func (q *asker) addFlags(c *cobra.Command) {
	c.Flags().StringVarP(&q.output, "output", "o", "text", "text or json")
	c.Flags().DurationVar(&q.timeout, "timeout", 10*time.Minute, "how long the operator may take")
}

func (q *asker) complete(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return fleet.Completions(cmd.Context(), q.Client, q.Namespace()), cobra.ShellCompDirectiveNoFileComp
}

// ask has the operator run a command, and ends as that does.
func (q *asker) ask(ctx context.Context, command []string) error {
	if q.output != "text" && q.output != "json" {
		return fmt.Errorf("--output is %q: it can be text or json", q.output)
	}
	late := fmt.Errorf("the operator has not answered within %s. See whether it works: kubectl get pods -n %s", q.timeout,
		q.Namespace())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := q.Clock.NewTimer(q.timeout)
	defer timer.Stop()
	go func() {
		select {
		case <-timer.C():
			cancel(late)
		case <-ctx.Done():
		}
	}()
	status, err := q.operator.Run(ctx, append(command, "--output="+q.output), podexec.Streams{Out: q.Out, ErrOut: q.ErrOut})
	switch {
	case err != nil || status == 0:
		return err
	case status == podexec.Found:
		return found
	}
	return podexec.ExitStatus(status)
}
