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

// rooms are the dependencies of one run of the agent.
type rooms struct {
	execute.Means
	source *facts.Source
	folder *installdir.Folder
	lock   installdir.Lock
}

// furnish creates the dependencies. Output is written to out.
func furnish(p Process, out io.Writer) *rooms {
	kept := state.NewRecords(p.Host.Files)
	defender := execute.NewDefender(p.Host.Antivirus, p.Clock, kept)
	program := &installdir.Program{Version: p.Version, Path: p.Executable}
	return &rooms{
		Means: execute.Means{
			Host: p.Host, Clock: p.Clock, Rand: p.Rand, Version: p.Version,
			Records: kept, Antivirus: defender, Answer: state.NewWriter(out, p.Clock),
		},
		source: &facts.Source{Host: p.Host, Clock: p.Clock, Records: kept, Program: program, Antivirus: defender},
		folder: &installdir.Folder{Host: p.Host, Records: kept, Program: program},
		lock:   installdir.Lock{Host: p.Host, Clock: p.Clock},
	}
}

// serve runs the agent as a Windows service until Windows requests a stop. Steps are not reported because no
// operator reads them.
func serve(ctx context.Context, p Process) {
	r := furnish(p, io.Discard)
	log := logs.NewOwn(p.Host, p.Clock, p.Stderr)
	daemon.Run(ctx, daemon.Parts{Means: r.Means, Source: r.source, Lock: r.lock, Log: log, API: p.API}, p.Ready)
}
