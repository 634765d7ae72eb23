package standin

import (
	"context"
	"errors"
	"flag"
	"io"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/payload"
)

// kubeLogRunner runs another program with its output in a log: kube-log-runner -log-file=FILE [flags] PROGRAM [arguments].
func (t *table) kubeLogRunner(ctx context.Context, p *fake.Process, _ payload.Executable) int {
	flags := flag.NewFlagSet("kube-log-runner", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	path := flags.String("log-file", "", "")
	flags.String("log-file-size", "", "")
	flags.Duration("log-file-age", 0, "")
	flags.Duration("flush-interval", 0, "")
	flags.Bool("also-stdout", false, "")
	flags.Bool("redirect-stderr", true, "")
	if err := flags.Parse(p.Args); err != nil {
		return fail(p, "%v", err)
	}
	if flags.NArg() == 0 {
		return fail(p, "not enough arguments to run")
	}
	if err := logTo(p, *path); err != nil {
		return fail(p, "%v", err)
	}
	return t.runChild(ctx, p, flags.Arg(0), flags.Args()[1:])
}

// runChild runs a program as a child of a process until it ends, is killed, or the parent is asked to stop.
func (t *table) runChild(ctx context.Context, p *fake.Process, path string, args []string) int {
	content, err := p.Machine.Drive().ReadFile(path)
	if err != nil {
		return fail(p, "starting command: %v", err)
	}
	run, err := t.find(content)
	if err != nil {
		return fail(p, "starting command: fork/exec %s: %v", path, errors.Join(fake.ErrNotExecutable, err))
	}
	if p.Service != "" && !hasServiceFlag(args) {
		return fail(p, "%s was not told to run as a service", path)
	}
	child, err := p.Spawn(path, args...)
	if err != nil {
		return fail(p, "starting command: %v", err)
	}
	child.Stdout, child.Stderr = p.Stdout, p.Stderr
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		// It returns when the child was killed, or with an error when the child has returned.
		if err := p.Machine.WaitFor(ctx, func(*fake.Machine) bool { return !child.Alive() }); err == nil {
			cancel()
		}
	}()
	code := run(ctx, child)
	killed := !child.Alive()
	child.Exit(code)
	cancel()
	<-watched
	if killed {
		return 1
	}
	return code
}

// hasServiceFlag finds the flag by which Kubernetes' programs know that they are a service.
func hasServiceFlag(args []string) bool {
	for _, arg := range args {
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name == "windows-service" && (!hasValue || value == "true") {
			return true
		}
	}
	return false
}
