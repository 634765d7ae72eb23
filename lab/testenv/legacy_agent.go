package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// legacyAgentMagic is the start of the stand-in for the agent of legacy operators. The services to configure follow as
// JSON.
const legacyAgentMagic = "MZwmco-lab-older-agent\n"

// legacyAgentInterval is the check interval. The real agent checks at each change of its Node, and every two minutes.
const legacyAgentInterval = time.Second

// legacyAgent returns the executable of an agent that keeps the given services.
func legacyAgent(services []host.ServiceConfig) ([]byte, error) {
	data, err := json.Marshal(services)
	if err != nil {
		return nil, fmt.Errorf("encode services: %w", err)
	}
	return append([]byte(legacyAgentMagic), data...), nil
}

// withLegacyAgent adds the legacy agent to the programs of a table.
func withLegacyAgent(next fake.ProgramTable, clock clock.WithTicker) fake.ProgramTable {
	return func(content []byte) (fake.Program, error) {
		data, ok := bytes.CutPrefix(content, []byte(legacyAgentMagic))
		if !ok {
			return next(content)
		}
		var services []host.ServiceConfig
		if err := json.Unmarshal(data, &services); err != nil {
			return nil, fmt.Errorf("read what the older agent is to configure: %w", err)
		}
		return func(ctx context.Context, p *fake.Process) int {
			ticker := clock.NewTicker(legacyAgentInterval)
			defer ticker.Stop()
			for {
				for _, config := range services {
					if err := revertService(ctx, p.Host.Services, config); err != nil {
						fmt.Fprintf(p.Stderr, "E %v\r\n", err) // retried with the next tick
					}
				}
				select {
				case <-ctx.Done():
					return 0
				case <-ticker.C():
				}
			}
		}, nil
	}
}

// revertService restores the legacy agent's configuration of a service, and starts the service.
func revertService(ctx context.Context, services host.Services, config host.ServiceConfig) error {
	found, err := services.Query(ctx, config.Name)
	if err != nil {
		return err
	}
	if len(found) == 0 || found[0].CommandLine != config.CommandLine || found[0].Description != config.Description ||
		!slices.Equal(found[0].Dependencies, config.Dependencies) {
		if len(found) > 0 {
			if err := services.Stop(ctx, config.Name); err != nil {
				return err
			}
		}
		if err := services.Configure(ctx, config); err != nil {
			return err
		}
	}
	if len(found) > 0 && found[0].State == host.ServiceRunning {
		return nil
	}
	return services.Start(ctx, config.Name)
}
