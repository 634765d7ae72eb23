// Package wicd lets simulated hosts run the agent itself, in process, as their wicd.exe.
package wicd

import (
	"context"
	"crypto/rand"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// Program gives standin.Options.Agent: the agent on a clock.
func Program(clock clock.WithTicker) func(version string) fake.Program {
	return func(version string) fake.Program {
		return func(ctx context.Context, p *fake.Process) int {
			return agent.Main(ctx, agent.Process{
				Host: p.Host, Args: p.Args, Executable: p.Path, Version: version,
				Stdout: p.Stdout, Stderr: p.Stderr, Clock: p.Machine.Clock(clock), Rand: rand.Reader,
				// The simulated service control manager takes a service for running as soon as its program runs.
				Ready: func() {},
			})
		}
	}
}
