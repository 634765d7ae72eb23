package testenv

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/process"
	"github.com/windows-machine-config/wmco/lab/standin"
)

const agentPath = "build/wicd.exe"

// generatePayload generates the payload with the real agent.
func (r *Environment) generatePayload(context.Context) (err error) {
	if r.payloadDir = r.options.PayloadDir; r.payloadDir != "" {
		return nil
	}
	program := r.options.Agent
	if program == "" {
		if program, err = process.Built(agentPath); err != nil {
			return fmt.Errorf("find the agent: %w: run `make %s`, or set Options.Agent", err, agentPath)
		}
	}
	r.payloadDir = filepath.Join(r.dir, "payload")
	_, err = payload.Generate(r.payloadDir, program, r.options.Version, payload.Options{})
	return err
}

// programTable returns the programs for the payload's executables on hosts.
func (r *Environment) programTable() fake.ProgramTable {
	return withLegacyAgent(standin.Programs(standin.Options{
		Clock: r.programClock(), Dial: r.dialAPI, Agent: r.agentProgram, AgentVersion: r.options.Version, ProviderID: r.providerID,
		Zone: r.zoneAt, CloudWorks: r.options.CloudWorks,
	}), r.options.Clock)
}

// agentProgram returns the real agent, in this process.
func (r *Environment) agentProgram(version string) fake.Program {
	return func(ctx context.Context, p *fake.Process) int {
		return agent.Main(ctx, agent.Process{
			Host: p.Host, Args: p.Args, Executable: p.Path, Version: version, Stdout: r.agentOutput(p), Stderr: p.Stderr,
			Clock: p.Machine.Clock(r.options.Clock), Rand: r.options.Rand, API: report.HTTPS{Dial: r.dialAPI}, Ready: func() {},
		})
	}
}
