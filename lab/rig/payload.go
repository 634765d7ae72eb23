package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin"
)

const (
	agentPath  = "build/wicd.exe"
	rootModule = "module github.com/windows-machine-config/wmco\n"
)

// makePayload makes the payload with the real agent in it.
func (r *Rig) makePayload(context.Context) (err error) {
	if r.payloadDir = r.options.PayloadDir; r.payloadDir != "" {
		return nil
	}
	program := r.options.Agent
	if program == "" {
		if program, err = findAgent(); err != nil {
			return err
		}
	}
	r.payloadDir = filepath.Join(r.dir, "payload")
	_, err = payload.Generate(r.payloadDir, program, r.options.Version, payload.Options{})
	return err
}

// findAgent looks below the root of the repository that the working directory is in.
func findAgent() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for current := dir; ; current = filepath.Dir(current) {
		data, err := os.ReadFile(filepath.Join(current, "go.mod"))
		if err == nil && bytes.Contains(data, []byte(rootModule)) {
			path := filepath.Join(current, agentPath)
			if _, err := os.Stat(path); err != nil {
				return "", fmt.Errorf("the agent is not built: %w: run `make %s`", err, agentPath)
			}
			return path, nil
		}
		if current == filepath.Dir(current) {
			return "", errors.New("the agent is not found: " + dir + " is not in the repository; set Options.Agent")
		}
	}
}

// programTable is what the executables of the payload do on hosts.
func (r *Rig) programTable() fake.ProgramTable {
	return withOlderAgent(standin.Programs(standin.Options{
		Clock: r.programClock(), Dial: r.dialAPI, Agent: r.agent, AgentVersion: r.options.Version, ProviderID: r.providerID,
		Zone: r.zoneAt, CloudWorks: r.options.CloudWorks,
	}), r.options.Clock)
}

// agent returns the real agent, in this process.
func (r *Rig) agent(version string) fake.Program {
	return func(ctx context.Context, p *fake.Process) int {
		return agent.Main(ctx, agent.Process{
			Host: p.Host, Args: p.Args, Executable: p.Path, Version: version, Stdout: r.mouth(p), Stderr: p.Stderr,
			Clock: p.Machine.Clock(r.options.Clock), Rand: r.options.Rand, API: report.HTTPS{Dial: r.dialAPI}, Ready: func() {},
		})
	}
}
