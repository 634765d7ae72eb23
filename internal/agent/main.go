// Package agent runs on a Windows host: it gathers facts, creates a plan, runs the steps, verifies
// the node and restores the host. As a Windows service the agent repairs drift. The agent accesses Windows only
// through package host.
//
// This package is the entry point: it parses the command line, creates the dependencies of the subpackages, and
// runs the command in a subpackage. The package does not change the host. The tests run commands and the service
// on a machine in memory. The name of a test file begins with the name of the tested package.
package agent

import (
	"context"
	"fmt"
	"io"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
)

// Process contains the dependencies of the agent's process. Only API and Ready may be nil.
type Process struct {
	Host       host.Host
	Args       []string // without the program's name
	Executable string   // the program's own path
	Version    string
	Stdout     io.Writer // for the output of a command
	Stderr     io.Writer // for the log of the service
	Clock      clock.WithTicker
	Rand       io.Reader // for keys
	// API sends the Node's condition WindowsConfiguration to the API server; nil disables publishing.
	API report.APIServer
	// Ready is called in service mode when the service runs.
	Ready func()
}

// IsService reports whether a command line requests the service, which can run only under the service control
// manager.
func IsService(args []string) bool {
	return len(args) > 0 && agentapi.Name(args[0]) == agentapi.Service
}

// Main runs one command, or the service until ctx is done. A nonzero exit code means only failure: the output
// contains the details.
func Main(ctx context.Context, p Process) (exitCode int) {
	in, err := parseArgs(p.Args)
	if err != nil {
		_, _ = fmt.Fprintln(p.Stderr, err)
		state.NewWriter(p.Stdout, p.Clock).Failure(&agentapi.Failure{Reason: agentapi.ReasonInvalidInput, Message: err.Error()})
		return 1
	}
	switch in.command {
	case versionCommand:
		_, _ = fmt.Fprintln(p.Stdout, p.Version)
		return 0
	case agentapi.Service:
		runService(ctx, p)
		return 0
	}
	r := newCommandRunner(p, p.Stdout)
	if err := r.run(ctx, in); err != nil {
		r.Answer.Failure(state.FailureOf("", err))
		return 1
	}
	return 0
}
