// Package inspection contains the commands of the operator's program that inspect hosts independently of the
// running operator. kubectl windows runs these commands in the operator's pod.
package inspection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// ExitStatus ends the program with a specific status and without a message: the output already contains everything.
type ExitStatus int

// Found is the exit status of a plan with changes, and of a diagnosis with a failed check.
const Found ExitStatus = podexec.Found

func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ExitStatus returns the number.
func (s ExitStatus) ExitStatus() int { return int(s) }

// errCallerGone is the cause that ends a command after its caller has disconnected.
var errCallerGone = errors.New("the caller of the command has disconnected")

// options are the common flags of the commands.
type options struct {
	output   string
	attached bool
}

func (o *options) addFlags(command *cobra.Command) {
	command.Flags().StringVarP(&o.output, "output", "o", "text", "output format. One of: text, json")
	o.addAttached(command)
}

func (o *options) addAttached(command *cobra.Command) {
	command.Flags().BoolVar(&o.attached, "attached", false, "exit when standard input is closed")
}

func (o *options) checkOutput() error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("invalid --output %q: use text or json", o.output)
	}
	return nil
}

// newCallerContext returns a context that ends with the command's, or when the caller disconnects. A command that was
// started in a pod continues after a lost connection, and only its standard input reveals the loss.
func (o *options) newCallerContext(command *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(command.Context())
	if o.attached {
		go func() {
			_, _ = io.Copy(io.Discard, command.InOrStdin())
			cancel(errCallerGone)
		}()
	}
	return ctx, func() { cancel(nil) }
}

// runInspector runs a command with an inspector, until the caller disconnects.
func (o *options) runInspector(command *cobra.Command, configure func() (operator.Config, error),
	run func(context.Context, *inspector) error) error {
	ctx, cancel := o.newCallerContext(command)
	defer cancel()
	i, err := newInspector(configure)
	if err != nil {
		return err
	}
	return run(ctx, i)
}

// write writes a document as JSON, or the given text.
func (o *options) write(out io.Writer, document any, words string) error {
	if o.output == "json" {
		encoded, err := json.MarshalIndent(document, "", "  ")
		if err != nil {
			return err
		}
		words = string(encoded) + "\n"
	}
	_, err := io.WriteString(out, words)
	return err
}

// Commands returns the commands. configure returns the operator's configuration; only the settings for hosts
// are used.
func Commands(configure func() (operator.Config, error)) []*cobra.Command {
	return []*cobra.Command{planCommand(configure), diagnoseCommand(configure), logsCommand(configure), collectCommand(configure)}
}

func planCommand(configure func() (operator.Config, error)) *cobra.Command {
	o, all := &options{}, false
	command := &cobra.Command{
		Use: "plan [NAME...]", Short: "Show pending changes of hosts; nothing is changed",
		RunE: func(command *cobra.Command, names []string) error {
			if err := o.checkOutput(); err != nil {
				return err
			}
			if all == (len(names) > 0) {
				return errors.New("specify the names of hosts, or --all")
			}
			return o.runInspector(command, configure, func(ctx context.Context, i *inspector) error {
				return i.planHosts(ctx, names, func(f []Forecast) error { return o.write(command.OutOrStdout(), f, formatForecasts(f)) })
			})
		},
	}
	o.addFlags(command)
	command.Flags().BoolVar(&all, "all", false, "all hosts")
	return command
}

func diagnoseCommand(configure func() (operator.Config, error)) *cobra.Command {
	o, user := &options{}, ""
	command := &cobra.Command{
		Use: "diagnose NAME|ADDRESS", Short: "Diagnose why a host is not a node; nothing is changed",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := o.checkOutput(); err != nil {
				return err
			}
			return o.runInspector(command, configure, func(ctx context.Context, i *inspector) error {
				return i.diagnoseHost(ctx, arguments[0], user, func(d Diagnosis) error { return o.write(command.OutOrStdout(), d, formatDiagnosis(d)) })
			})
		},
	}
	o.addFlags(command)
	command.Flags().StringVar(&user, "username", "", "user to log in as (default: the user in the list of hosts, or Administrator)")
	return command
}
