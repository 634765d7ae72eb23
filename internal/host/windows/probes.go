//go:build windows

package windows

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/cri"
)

// probes implements host.Probes: HTTP with the standard library, and the container runtime interface (CRI) with gRPC
// over a named pipe. go-winio opens the pipe (CreateFileW with SECURITY_SQOS_PRESENT and SECURITY_ANONYMOUS), so
// that the listener cannot impersonate the agent.
type probes struct{}

func (probes) HTTPGet(ctx context.Context, url string, client []byte) (status int, body string, err error) {
	return httpGet(ctx, url, client)
}

func (probes) ContainerRuntime(ctx context.Context, endpoint string) (host.RuntimeStatus, error) {
	connection, err := dialRuntime(ctx, endpoint)
	if err != nil {
		return host.RuntimeStatus{}, err
	}
	status, err := cri.Status(ctx, connection)
	if err != nil {
		return host.RuntimeStatus{}, fmt.Errorf("query the container runtime at %s: %w", endpoint, err)
	}
	return status, nil
}
