package agent

import (
	"context"
	"io"

	"github.com/windows-machine-config/wmco/internal/agent/daemon"
	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agent/facts"
	"github.com/windows-machine-config/wmco/internal/agent/installdir"
	"github.com/windows-machine-config/wmco/internal/agent/logs"
	"github.com/windows-machine-config/wmco/internal/agent/state"
)

// commandRunner runs one command of the agent, with its dependencies.
type commandRunner struct {
	execute.Dependencies
	source    *facts.Source
	directory *installdir.Directory
	lock      installdir.Lock
}

// newCommandRunner returns a commandRunner with its dependencies. The output is written to out.
func newCommandRunner(p Process, out io.Writer) *commandRunner {
	kept := state.NewRecords(p.Host.Files)
	defender := execute.NewDefender(p.Host.Antivirus, p.Clock, kept)
	program := &installdir.Program{Version: p.Version, Path: p.Executable}
	return &commandRunner{
		Dependencies: execute.Dependencies{
			Host: p.Host, Clock: p.Clock, Rand: p.Rand, Version: p.Version,
			Records: kept, Antivirus: defender, Answer: state.NewWriter(out, p.Clock),
		},
		source:    &facts.Source{Host: p.Host, Clock: p.Clock, Records: kept, Program: program, Antivirus: defender},
		directory: &installdir.Directory{Host: p.Host, Records: kept, Program: program},
		lock:      installdir.Lock{Host: p.Host, Clock: p.Clock},
	}
}

// runService runs the agent as a Windows service until Windows requests a stop. Steps are not reported because no
// operator reads them.
func runService(ctx context.Context, p Process) {
	r := newCommandRunner(p, io.Discard)
	log := logs.NewServiceLog(p.Host, p.Clock, p.Stderr)
	daemon.Run(ctx, daemon.Parts{Dependencies: r.Dependencies, Source: r.source, Lock: r.lock, Log: log, API: p.API}, p.Ready)
}
