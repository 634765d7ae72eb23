// Package actions contains the commands that request a change from the operator: a pause, a retry, a restart, a
// new host key, a removal without the host. Each command writes the field or annotation described in the
// guides, and waits for the effect.
package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/fleet"
)

// pollInterval is the interval between checks for the effect.
const pollInterval = time.Second

// request is the change requested by a command.
type request struct {
	use, short, long, example string
	// danger returns the warning to confirm for one instance; nil without confirmation.
	danger func(fleet.Instance) string
	// refuse returns an error if the request is invalid for an instance; nil if all requests are valid.
	refuse func(fleet.Instance) error
	// write writes the request.
	write func(ctx context.Context, c client.Client, i fleet.Instance) error
	// done reports whether the effect has occurred. The instance is nil if it no longer exists.
	done func(ctx context.Context, c client.Client, before fleet.Instance, now *fleet.Instance) (bool, error)
	// doneMessage is the message for one instance after the effect.
	doneMessage string
	// timeout is the default timeout for the effect.
	timeout time.Duration
}

// runner runs a request according to its flags.
type runner struct {
	*cmdutil.Access
	request
	yes, wait bool
	timeout   time.Duration
}

// newCommand returns the command of a request. Its arguments are the names of one or more instances.
func newCommand(a *cmdutil.Access, r request) *cobra.Command {
	run := &runner{Access: a, request: r}
	c := &cobra.Command{
		Use: r.use, Short: r.short, Long: r.long, Example: r.example, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error { return run.runRequests(cmd.Context(), names) },
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return fleet.Completions(cmd.Context(), a.Client, a.Namespace()), cobra.ShellCompDirectiveNoFileComp
		},
	}
	run.addFlags(c)
	return c
}

func (r *runner) addFlags(c *cobra.Command) {
	if r.danger != nil {
		c.Flags().BoolVarP(&r.yes, "yes", "y", false, "do not ask for confirmation")
	}
	c.Flags().BoolVar(&r.wait, "wait", true, "wait for completion")
	c.Flags().DurationVar(&r.timeout, "timeout", r.request.timeout, "timeout of --wait")
}

// runRequests runs the request for each named instance. All names are resolved first, so that a wrong name changes
// nothing.
func (r *runner) runRequests(ctx context.Context, names []string) error {
	c, err := r.Client()
	if err != nil {
		return err
	}
	known, err := fleet.ReadInstances(ctx, c, r.Namespace())
	if err != nil {
		return err
	}
	var chosen []fleet.Instance
	for _, name := range names {
		instance, err := fleet.Find(known, name)
		if err != nil {
			return err
		}
		if r.refuse != nil {
			if err := r.refuse(instance); err != nil {
				return err
			}
		}
		chosen = append(chosen, instance)
	}
	if err := r.confirmRequests(chosen); err != nil {
		return err
	}
	for _, instance := range chosen {
		if err := r.write(ctx, c, instance); err != nil {
			return err
		}
	}
	if !r.wait {
		return nil
	}
	for _, instance := range chosen {
		if err := r.waitForEffect(ctx, c, instance); err != nil {
			return err
		}
		fmt.Fprintf(r.Out, "%s: %s\n", instance.Name, r.doneMessage)
	}
	return nil
}

// confirmRequests prompts an administrator to confirm a dangerous request.
func (r *runner) confirmRequests(chosen []fleet.Instance) error {
	if r.danger == nil || r.yes {
		return nil
	}
	var dangers []string
	for _, instance := range chosen {
		dangers = append(dangers, r.danger(instance))
	}
	return r.Confirm(dangers...)
}

// waitForEffect waits for the effect, and prints the progress of the operator.
func (r *runner) waitForEffect(ctx context.Context, c client.Client, before fleet.Instance) error {
	timeout := r.Clock.NewTimer(r.timeout)
	defer timeout.Stop()
	said := formatProgress(before)
	for {
		now, err := r.read(ctx, c, before)
		if err != nil {
			return err
		}
		if done, err := r.done(ctx, c, before, now); err != nil || done {
			return err
		}
		if now == nil {
			return fmt.Errorf("WindowsInstance %s was deleted meanwhile", before.Name)
		}
		if latest := formatProgress(*now); latest != said {
			said = latest
			fmt.Fprintln(r.ErrOut, said)
		}
		select {
		case <-r.Clock.After(pollInterval):
		case <-timeout.C():
			return fmt.Errorf("timed out after %s waiting for %s; the request is still pending. See: kubectl windows status %s",
				r.timeout, before.Name, before.Name)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func formatProgress(i fleet.Instance) string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s. %s", i.Name, fleet.State(i), i.Status.NextAction))
}

// read reads an instance again; nil if it no longer exists, or another instance has the same name.
func (r *runner) read(ctx context.Context, c client.Client, before fleet.Instance) (*fleet.Instance, error) {
	now := before
	err := c.Get(ctx, client.ObjectKeyFromObject(&before.WindowsInstance), &now.WindowsInstance)
	if apierrors.IsNotFound(err) || err == nil && now.UID != before.UID {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read WindowsInstance %s: %w", before.Name, err)
	}
	return &now, nil
}

// patchObject changes fields of an object.
func patchObject(ctx context.Context, c client.Client, object client.Object, fields map[string]any) error {
	patch, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("change %s: %w", object.GetName(), err)
	}
	return nil
}

func annotationPatch(key, value string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
}
