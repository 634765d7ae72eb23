// Package wicd runs the agent in process as wicd.exe of simulated hosts.
package wicd

import (
	"context"
	"crypto/rand"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// Program returns a value for standin.Options.Agent: the agent with a clock.
func Program(clock clock.WithTicker) func(version string) fake.Program {
	return func(version string) fake.Program {
		return func(ctx context.Context, p *fake.Process) int {
			return agent.Main(ctx, agent.Process{
				Host: p.Host, Args: p.Args, Executable: p.Path, Version: version,
				Stdout: p.Stdout, Stderr: p.Stderr, Clock: p.Machine.Clock(clock), Rand: rand.Reader,
				// The simulated service control manager reports a service as running as soon as its program
				// runs.
				Ready: func() {},
			})
		}
	}
}
