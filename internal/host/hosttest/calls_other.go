package hosttest

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/host"
)

type environmentCalls struct {
	of host.Environment
	*calls
}

func (w environmentCalls) Get(ctx context.Context) (map[string]string, error) {
	w.recordCall("Environment.Get")
	return w.of.Get(ctx)
}

func (w environmentCalls) Set(ctx context.Context, name, value string) error {
	w.recordCall("Environment.Set")
	return w.of.Set(ctx, name, value)
}

func (w environmentCalls) Unset(ctx context.Context, name string) error {
	w.recordCall("Environment.Unset")
	return w.of.Unset(ctx, name)
}

type firewallCalls struct {
	of host.Firewall
	*calls
}

func (w firewallCalls) Rules(ctx context.Context) ([]host.FirewallRule, error) {
	w.recordCall("Firewall.Rules")
	return w.of.Rules(ctx)
}

func (w firewallCalls) SetRule(ctx context.Context, rule host.FirewallRule) error {
	w.recordCall("Firewall.SetRule")
	return w.of.SetRule(ctx, rule)
}

func (w firewallCalls) DeleteRule(ctx context.Context, name string) error {
	w.recordCall("Firewall.DeleteRule")
	return w.of.DeleteRule(ctx, name)
}

type networksCalls struct {
	of host.Networks
	*calls
}

func (w networksCalls) Networks(ctx context.Context) ([]host.HNSNetwork, error) {
	w.recordCall("Networks.Networks")
	return w.of.Networks(ctx)
}

func (w networksCalls) DeleteNetwork(ctx context.Context, name string) error {
	w.recordCall("Networks.DeleteNetwork")
	return w.of.DeleteNetwork(ctx, name)
}

func (w networksCalls) Endpoints(ctx context.Context) ([]host.HNSEndpoint, error) {
	w.recordCall("Networks.Endpoints")
	return w.of.Endpoints(ctx)
}

func (w networksCalls) CreateEndpoint(ctx context.Context, network, name, address string) (host.HNSEndpoint, error) {
	w.recordCall("Networks.CreateEndpoint")
	return w.of.CreateEndpoint(ctx, network, name, address)
}

func (w networksCalls) AttachEndpoint(ctx context.Context, name string) error {
	w.recordCall("Networks.AttachEndpoint")
	return w.of.AttachEndpoint(ctx, name)
}

func (w networksCalls) DeleteEndpoint(ctx context.Context, name string) error {
	w.recordCall("Networks.DeleteEndpoint")
	return w.of.DeleteEndpoint(ctx, name)
}

type processesCalls struct {
	of host.Processes
	*calls
}

func (w processesCalls) List(ctx context.Context) ([]host.Process, error) {
	w.recordCall("Processes.List")
	return w.of.List(ctx)
}

func (w processesCalls) Kill(ctx context.Context, pid int) error {
	w.recordCall("Processes.Kill")
	return w.of.Kill(ctx, pid)
}

func (w processesCalls) Self() int {
	w.recordCall("Processes.Self")
	return w.of.Self()
}

type probesCalls struct {
	of host.Probes
	*calls
}

func (w probesCalls) HTTPGet(ctx context.Context, url string, client []byte) (status int, body string, err error) {
	w.recordCall("Probes.HTTPGet")
	return w.of.HTTPGet(ctx, url, client)
}

func (w probesCalls) ContainerRuntime(ctx context.Context, endpoint string) (host.RuntimeStatus, error) {
	w.recordCall("Probes.ContainerRuntime")
	return w.of.ContainerRuntime(ctx, endpoint)
}

type eventLogCalls struct {
	of host.EventLog
	*calls
}

func (w eventLogCalls) Read(ctx context.Context, log string, each func(host.LoggedEvent) bool) error {
	w.recordCall("EventLog.Read")
	return w.of.Read(ctx, log, each)
}

func (w eventLogCalls) Report(ctx context.Context, event host.Event) error {
	w.recordCall("EventLog.Report")
	return w.of.Report(ctx, event)
}

func (w eventLogCalls) HasSource(ctx context.Context, source string) (bool, error) {
	w.recordCall("EventLog.HasSource")
	return w.of.HasSource(ctx, source)
}

func (w eventLogCalls) AddSource(ctx context.Context, source string) error {
	w.recordCall("EventLog.AddSource")
	return w.of.AddSource(ctx, source)
}

func (w eventLogCalls) RemoveSource(ctx context.Context, source string) error {
	w.recordCall("EventLog.RemoveSource")
	return w.of.RemoveSource(ctx, source)
}

type antivirusCalls struct {
	of host.Antivirus
	*calls
}

func (w antivirusCalls) IsActive(ctx context.Context) (bool, error) {
	w.recordCall("Antivirus.IsActive")
	return w.of.IsActive(ctx)
}

func (w antivirusCalls) Exclusions(ctx context.Context) ([]host.Exclusion, error) {
	w.recordCall("Antivirus.Exclusions")
	return w.of.Exclusions(ctx)
}

func (w antivirusCalls) AddExclusion(ctx context.Context, exclusion host.Exclusion) error {
	w.recordCall("Antivirus.AddExclusion")
	return w.of.AddExclusion(ctx, exclusion)
}

func (w antivirusCalls) RemoveExclusion(ctx context.Context, exclusion host.Exclusion) error {
	w.recordCall("Antivirus.RemoveExclusion")
	return w.of.RemoveExclusion(ctx, exclusion)
}

type outboundCalls struct {
	of host.Outbound
	*calls
}

func (w outboundCalls) LookupHost(ctx context.Context, name string) (addresses []string, err error) {
	w.recordCall("Outbound.LookupHost")
	return w.of.LookupHost(ctx, name)
}

func (w outboundCalls) Connect(ctx context.Context, address string) error {
	w.recordCall("Outbound.Connect")
	return w.of.Connect(ctx, address)
}
