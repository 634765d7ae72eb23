// Package fakepod simulates the pod of the operator, where kubectl windows runs commands: no node of the
// lab runs pods.
package fakepod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/gather"
	"github.com/windows-machine-config/wmco/internal/inspection"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/plugin/logs"
	"github.com/windows-machine-config/wmco/internal/plugin/plan"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// Pod runs commands of the operator's program as the real pod would, with the operator's configuration and
// rights.
type Pod struct{ Config operator.Config }

// Run implements the commands that kubectl windows runs in the pod.
func (p Pod) Run(ctx context.Context, arguments []string, streams podexec.Streams) (int, error) {
	root := &cobra.Command{Use: "wmco", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(inspection.Commands(func() (operator.Config, error) { return p.Config, nil })...)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	if streams.In != nil {
		root.SetIn(streams.In)
	}
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	status := inspection.ExitStatus(0)
	switch {
	case ctx.Err() != nil:
		return 0, errors.Join(err, context.Cause(ctx))
	case err == nil:
		return 0, nil
	case errors.As(err, &status):
		return status.ExitStatus(), nil
	}
	fmt.Fprintln(streams.ErrOut, "wmco:", err)
	return 1, nil
}

// Windows runs a command of kubectl windows that needs the operator's pod, and returns the output and the exit
// status.
func (p Pod) Windows(ctx context.Context, kubeconfig string, arguments ...string) (output string, exitStatus int, err error) {
	var out bytes.Buffer
	a := cmdutil.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}, clock.RealClock{})
	a.Flags.KubeConfig = ptr.To(kubeconfig)
	root := &cobra.Command{Use: "windows", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(append(plan.New(a, p), logs.New(a, p), gather.New(a, p))...)
	root.SetArgs(arguments)
	status := podexec.ExitStatus(0)
	if err = root.ExecuteContext(ctx); errors.As(err, &status) {
		return out.String(), int(status), nil
	}
	return out.String(), 0, err
}
