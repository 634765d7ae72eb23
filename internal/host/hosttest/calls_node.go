package hosttest

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/host"
)

type rootsCalls struct {
	of host.Roots
	*calls
}

func (w rootsCalls) Fingerprints(ctx context.Context) ([]string, error) {
	w.recordCall("Roots.Fingerprints")
	return w.of.Fingerprints(ctx)
}

func (w rootsCalls) Add(ctx context.Context, der []byte) error {
	w.recordCall("Roots.Add")
	return w.of.Add(ctx, der)
}

func (w rootsCalls) Remove(ctx context.Context, fingerprint string) error {
	w.recordCall("Roots.Remove")
	return w.of.Remove(ctx, fingerprint)
}

type routesCalls struct {
	of host.Routes
	*calls
}

func (w routesCalls) ViaDefault(ctx context.Context) ([]string, error) {
	w.recordCall("Routes.ViaDefault")
	return w.of.ViaDefault(ctx)
}

func (w routesCalls) Add(ctx context.Context, destination string) error {
	w.recordCall("Routes.Add")
	return w.of.Add(ctx, destination)
}

func (w routesCalls) Delete(ctx context.Context, destination string) error {
	w.recordCall("Routes.Delete")
	return w.of.Delete(ctx, destination)
}

type logsCalls struct {
	of host.Logs
	*calls
}

func (w logsCalls) Rotate(ctx context.Context, path, to string) error {
	w.recordCall("Logs.Rotate")
	return w.of.Rotate(ctx, path, to)
}

type metadataCalls struct {
	of host.Metadata
	*calls
}

func (w metadataCalls) HostName(ctx context.Context, platform string) (string, error) {
	w.recordCall("Metadata.HostName")
	return w.of.HostName(ctx, platform)
}
