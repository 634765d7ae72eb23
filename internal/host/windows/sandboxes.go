//go:build windows

package windows

import (
	"context"
	"fmt"
	"net"

	"github.com/Microsoft/go-winio"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/cri"
)

// sandboxes implements host.Sandboxes: CRI with gRPC over a named pipe, like probes.go.
type sandboxes struct{}

func (sandboxes) List(ctx context.Context, endpoint string) ([]host.Sandbox, error) {
	connection, err := dialRuntime(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	found, err := cri.ListSandboxes(ctx, connection)
	if err != nil {
		return nil, fmt.Errorf("query the container runtime at %s: %w", endpoint, err)
	}
	return found, nil
}

func (sandboxes) End(ctx context.Context, endpoint, id string) error {
	connection, err := dialRuntime(ctx, endpoint)
	if err != nil {
		return err
	}
	if err := cri.EndSandbox(ctx, connection, id); err != nil {
		return fmt.Errorf("query the container runtime at %s: %w", endpoint, err)
	}
	return nil
}

func dialRuntime(ctx context.Context, endpoint string) (net.Conn, error) {
	pipe, err := pipeOf(endpoint)
	if err != nil {
		return nil, err
	}
	connection, err := winio.DialPipeContext(ctx, pipe)
	if err != nil {
		return nil, fmt.Errorf("connect to the container runtime at %s: %w", endpoint, err)
	}
	return connection, nil
}
