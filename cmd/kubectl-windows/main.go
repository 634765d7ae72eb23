// Command kubectl-windows is a plugin of kubectl and oc: kubectl windows.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/plugin"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// version is set by the build.
var version = "0.0.0-unversioned"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := plugin.New(streams, clock.RealClock{}, version)
	root.SetArgs(plugin.Arguments(os.Args))
	err := root.ExecuteContext(ctx)
	if status := podexec.ExitStatus(0); errors.As(err, &status) {
		stop()
		os.Exit(int(status)) // the command has already printed the reason
	}
	if err != nil {
		fmt.Fprintln(cmdutil.Printable(os.Stderr), "Error:", err)
		stop()
		os.Exit(1)
	}
}
