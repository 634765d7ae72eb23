package hostutil

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// DescribeForeignRuntime returns the end of a message about a stopped service: another container runtime serves
// the pipe of containerd. That runtime may also hold the database of containerd's store; then the start of
// containerd waits until Windows ends the start. The result is "" for other services, or if nothing serves the
// pipe.
func DescribeForeignRuntime(ctx context.Context, probes host.Probes, service string) string {
	if service != nodespec.ServiceContainerd {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, timeouts.CheckTimeout)
	defer cancel()
	if _, err := probes.ContainerRuntime(ctx, nodespec.ContainerdEndpoint); err != nil {
		return ""
	}
	return ". Another container runtime on the host serves " + nodespec.ContainerdEndpoint + ": stop it, and disable its service"
}
