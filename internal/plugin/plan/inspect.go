// Package plan contains the commands that run in the operator's pod, because only the operator can connect
// to hosts: plan and diagnose.
package plan

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

// exitFound is the status of a plan with changes, and of a diagnosis with a failure.
const exitFound podexec.ExitStatus = 2

// operatorClient runs the operator's commands.
type operatorClient struct {
	*cmdutil.Access
	operator podexec.Runner
	output   string
	timeout  time.Duration
}

// New returns the commands.
func New(a *cmdutil.Access, operator podexec.Runner) []*cobra.Command {
	return []*cobra.Command{planCommand(&operatorClient{Access: a, operator: operator}), diagnoseCommand(&operatorClient{Access: a, operator: operator})}
}

func planCommand(q *operatorClient) *cobra.Command {
	all := false
	c := &cobra.Command{
		Use: "plan NAME... | --all", Short: "Show pending changes of hosts",
		Long: `Show the pending steps on hosts, with reasons and the bytes to send. For steps that disrupt pods, show the pods to evict and the
PodDisruptionBudgets that block the eviction. Nothing is changed. The operator connects to the hosts: a command runs in the
operator's pod.

The exit status is 0 if no host would be changed, 2 if a host would be changed, and 1 if the result is unknown for a host.`,
		Example: `  kubectl windows plan win-worker-1

  # All hosts, as JSON
  kubectl windows plan --all -o json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			switch {
			case all && len(names) > 0:
				return errors.New("specify either names or --all")
			case all:
				names = []string{"--all"}
			case len(names) == 0:
				return errors.New("specify the names of hosts, or --all")
			}
			return q.runCommand(cmd.Context(), append([]string{"plan"}, names...))
		},
		ValidArgsFunction: q.completeNames,
	}
	c.Flags().BoolVar(&all, "all", false, "all hosts")
	q.addFlags(c)
	return c
}

func diagnoseCommand(q *operatorClient) *cobra.Command {
	user := ""
	c := &cobra.Command{
		Use: "diagnose NAME|ADDRESS", Short: "Diagnose why a host is not a node",
		Long: `Check the connection and the requirements of a host, also of a host that never joined or is not listed. The checks of the
connection are name resolution, port 22, the SSH server, the host key, the login as an administrator, and the agent. The checks of
Windows are the build, the features, the connection to the API server, the clock, the disk space and the ports of a node. A check
has passed, has failed, with the action to take, or was not reached. The operator connects to the host: a command runs in the
operator's pod. If the host lacks the agent, a copy is installed and deleted again. Nothing else is changed, and no host key is
pinned.

The exit status is 0 if no check has failed, 2 if a check has failed, and 1 if the host could not be checked, or if files of the
check are left on the host. A check that was not reached because the cluster's settings are unknown does not count as failed.`,
		Example: `  kubectl windows diagnose win-worker-1

  # A host that is not listed yet
  kubectl windows diagnose 10.0.0.17 --username=Administrator`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			command := []string{"diagnose", arguments[0]}
			if user != "" {
				command = append(command, "--username="+user)
			}
			return q.runCommand(cmd.Context(), command)
		},
		ValidArgsFunction: q.completeNames,
	}
	c.Flags().StringVar(&user, "username", "", "user to log in as (default: the user in the list of hosts, or Administrator)")
	q.addFlags(c)
	return c
}

func (q *operatorClient) addFlags(c *cobra.Command) {
	c.Flags().StringVarP(&q.output, "output", "o", "text", "output format. One of: text, json")
	c.Flags().DurationVar(&q.timeout, "timeout", 10*time.Minute, "timeout for the operator")
}

func (q *operatorClient) completeNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return fleet.Completions(cmd.Context(), q.Client, q.Namespace()), cobra.ShellCompDirectiveNoFileComp
}

// runCommand runs a command of the operator, and returns its exit status as an error.
func (q *operatorClient) runCommand(ctx context.Context, command []string) error {
	if q.output != "text" && q.output != "json" {
		return fmt.Errorf("invalid --output %q: use text or json", q.output)
	}
	late := fmt.Errorf("the operator has not responded within %s. Check its pod: kubectl get pods -n %s", q.timeout,
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
		return exitFound
	}
	return podexec.ExitStatus(status)
}
