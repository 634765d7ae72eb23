package hosttest

import (
	"context"
	"io"
	"sync"

	"github.com/windows-machine-config/wmco/internal/host"
)

// calls records the called methods of a host.
type calls struct {
	mu      sync.Mutex
	stopped bool
	seen    map[string]bool
}

func (c *calls) recordCall(operation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[operation] = true
}

// stop ends the recording before the cleanup.
func (c *calls) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

func (c *calls) hasCall(operation string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[operation]
}

// wrapHost returns the host with wrappers that record each call. A new interface of host.Host needs a wrapper here: the
// suite fails for a behavior without a recorded call of its method.
func (c *calls) wrapHost(h host.Host) host.Host {
	h.System = systemCalls{h.System, c}
	h.Power = powerCalls{h.Power, c}
	h.Features = featuresCalls{h.Features, c}
	h.Services = servicesCalls{h.Services, c}
	h.Files = filesCalls{h.Files, c}
	h.Tree = treeCalls{h.Tree, c}
	h.Environment = environmentCalls{h.Environment, c}
	h.Firewall = firewallCalls{h.Firewall, c}
	h.Networks = networksCalls{h.Networks, c}
	h.Processes = processesCalls{h.Processes, c}
	h.Probes = probesCalls{h.Probes, c}
	h.Sandboxes = sandboxesCalls{h.Sandboxes, c}
	h.Layers = layersCalls{h.Layers, c}
	h.EventLog = eventLogCalls{h.EventLog, c}
	h.Antivirus = antivirusCalls{h.Antivirus, c}
	h.Outbound = outboundCalls{h.Outbound, c}
	h.Roots = rootsCalls{h.Roots, c}
	h.Routes = routesCalls{h.Routes, c}
	h.Logs = logsCalls{h.Logs, c}
	h.Metadata = metadataCalls{h.Metadata, c}
	h.Registry = registryCalls{h.Registry, c}
	return h
}

type systemCalls struct {
	of host.System
	*calls
}

func (w systemCalls) Info(ctx context.Context) (host.SystemInfo, error) {
	w.recordCall("System.Info")
	return w.of.Info(ctx)
}

func (w systemCalls) SetHostName(ctx context.Context, name string) error {
	w.recordCall("System.SetHostName")
	return w.of.SetHostName(ctx, name)
}

type powerCalls struct {
	of host.Power
	*calls
}

func (w powerCalls) Reboot(ctx context.Context, reason string) error {
	w.recordCall("Power.Reboot")
	return w.of.Reboot(ctx, reason)
}

type featuresCalls struct {
	of host.Features
	*calls
}

func (w featuresCalls) State(ctx context.Context, name string) (host.FeatureState, error) {
	w.recordCall("Features.State")
	return w.of.State(ctx, name)
}

func (w featuresCalls) Enable(ctx context.Context, name string) error {
	w.recordCall("Features.Enable")
	return w.of.Enable(ctx, name)
}

func (w featuresCalls) Disable(ctx context.Context, name string) error {
	w.recordCall("Features.Disable")
	return w.of.Disable(ctx, name)
}

type servicesCalls struct {
	of host.Services
	*calls
}

func (w servicesCalls) Query(ctx context.Context, names ...string) ([]host.Service, error) {
	w.recordCall("Services.Query")
	return w.of.Query(ctx, names...)
}

func (w servicesCalls) Configure(ctx context.Context, config host.ServiceConfig) error {
	w.recordCall("Services.Configure")
	return w.of.Configure(ctx, config)
}

func (w servicesCalls) SetStartType(ctx context.Context, name string, start host.StartType) error {
	w.recordCall("Services.SetStartType")
	return w.of.SetStartType(ctx, name, start)
}

func (w servicesCalls) Start(ctx context.Context, name string) error {
	w.recordCall("Services.Start")
	return w.of.Start(ctx, name)
}

func (w servicesCalls) Stop(ctx context.Context, name string) error {
	w.recordCall("Services.Stop")
	return w.of.Stop(ctx, name)
}

func (w servicesCalls) Delete(ctx context.Context, name string) error {
	w.recordCall("Services.Delete")
	return w.of.Delete(ctx, name)
}

type filesCalls struct {
	of host.Files
	*calls
}

func (w filesCalls) Stat(ctx context.Context, path string) (host.FileInfo, error) {
	w.recordCall("Files.Stat")
	return w.of.Stat(ctx, path)
}

func (w filesCalls) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	w.recordCall("Files.Open")
	return w.of.Open(ctx, path)
}

func (w filesCalls) Write(ctx context.Context, path string, content io.Reader, options host.WriteOptions) error {
	w.recordCall("Files.Write")
	return w.of.Write(ctx, path, content, options)
}

func (w filesCalls) ReadDir(ctx context.Context, path string) ([]host.FileInfo, error) {
	w.recordCall("Files.ReadDir")
	return w.of.ReadDir(ctx, path)
}

func (w filesCalls) Remove(ctx context.Context, path string) error {
	w.recordCall("Files.Remove")
	return w.of.Remove(ctx, path)
}

type treeCalls struct {
	of host.Tree
	*calls
}

func (w treeCalls) MakeDirectory(ctx context.Context, path string, access host.Access) error {
	w.recordCall("Tree.MakeDirectory")
	return w.of.MakeDirectory(ctx, path, access)
}

func (w treeCalls) Symlink(ctx context.Context, target, link string) error {
	w.recordCall("Tree.Symlink")
	return w.of.Symlink(ctx, target, link)
}

func (w treeCalls) Rename(ctx context.Context, from, to string) error {
	w.recordCall("Tree.Rename")
	return w.of.Rename(ctx, from, to)
}
