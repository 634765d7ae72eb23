// Package agent is what runs on a Windows host: it gathers facts, has a plan made of them, does its steps, proves that
// the node works and gives the host back. As a Windows service it repairs drift. It speaks to Windows only through
// package host.
//
// This package is the entry: it reads the command line, furnishes the rooms below it with what they need, and hands the
// verb to one of them. It does nothing to the host itself. Its tests run verbs and the service on a machine in memory; the
// name of a file of tests begins with the package that they are about.
package agent

import (
	"context"
	"fmt"
	"io"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Process is what the agent's process has from its surroundings. Only API and Ready may be nil.
type Process struct {
	Host       host.Host
	Args       []string // after the program's name
	Executable string   // the program's own path
	Version    string
	Stdout     io.Writer // takes the answer of a verb
	Stderr     io.Writer // takes the log of the service
	Clock      clock.WithTicker
	Rand       io.Reader // for keys
	// API takes the Node's condition WindowsConfiguration to the API server; nil for nowhere.
	API report.APIServer
	// Ready is called in service mode when the service runs.
	Ready func()
}

// IsService reports whether a command line asks for the service, which a program can run only under the service control
// manager.
func IsService(args []string) bool { return len(args) > 0 && verb.Name(args[0]) == verb.Service }

// Main runs one verb, or the service until ctx is done. The exit code is 0 or not, without further meaning: the answer
// says the rest.
func Main(ctx context.Context, p Process) (exitCode int) {
	in, err := parse(p.Args)
	if err != nil {
		_, _ = fmt.Fprintln(p.Stderr, err)
		state.NewWriter(p.Stdout, p.Clock).Failure(&verb.Failure{Reason: verb.ReasonInvalidInput, Message: err.Error()})
		return 1
	}
	switch in.verb {
	case versionVerb:
		_, _ = fmt.Fprintln(p.Stdout, p.Version)
		return 0
	case verb.Service:
		serve(ctx, p)
		return 0
	}
	r := furnish(p, p.Stdout)
	if err := r.run(ctx, in); err != nil {
		r.Answer.Failure(state.FailureOf("", err))
		return 1
	}
	return 0
}
