package standin

import (
	"context"
	"flag"
	"io"
	"strings"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// kubeLogRunner runs another program and writes its output to a log: kube-log-runner -log-file=FILE [flags]
// PROGRAM [arguments].
func (t *table) kubeLogRunner(ctx context.Context, p *node.Process, _ payload.Executable) int {
	flags := flag.NewFlagSet("kube-log-runner", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	path := flags.String("log-file", "", "")
	flags.String("log-file-size", "", "")
	flags.Duration("log-file-age", 0, "")
	flags.Duration("flush-interval", 0, "")
	flags.Bool("also-stdout", false, "")
	flags.Bool("redirect-stderr", true, "")
	if err := flags.Parse(p.Args); err != nil {
		return reportFailure(p, "%v", err)
	}
	if flags.NArg() == 0 {
		return reportFailure(p, "not enough arguments to run")
	}
	if err := logTo(p, *path); err != nil {
		return reportFailure(p, "%v", err)
	}
	if p.Service && !hasServiceFlag(flags.Args()[1:]) {
		return reportFailure(p, "%s was not told to run as a service", flags.Arg(0))
	}
	code, err := p.Machine.Run(ctx, p.Stdout, flags.Arg(0), flags.Args()[1:]...)
	if err != nil {
		return reportFailure(p, "starting command: %v", err)
	}
	return code
}

// hasServiceFlag reports whether the arguments contain the flag by which Kubernetes programs detect that they
// run as a service.
func hasServiceFlag(args []string) bool {
	for _, arg := range args {
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name == "windows-service" && (!hasValue || value == "true") {
			return true
		}
	}
	return false
}
