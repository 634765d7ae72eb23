// Package collect reports the state and the history of a host for a support case, even if nothing works on the
// host. It changes nothing, omits possible secrets, and continues if Windows does not return some of the data.
package collect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// Maximum sizes of the collected parts: the output of the agent is limited.
const (
	maxServices, maxProcesses = 600, 300
	maxNetworks, maxEndpoints = 50, 500
	maxRules                  = 300
	maxEvents                 = 200 // from each log
	maxEventsOnly             = 1000
	maxMessageBytes           = 1024
)

// Collector collects the data of one host.
type Collector struct {
	Host  host.Host
	Clock clock.PassiveClock
	// Runs returns the recorded output of the last run of each command.
	Runs func(context.Context) ([]agentapi.Run, error)
}

// Collect returns the state and the history of the host.
func (s Collector) Collect(ctx context.Context) agentapi.Collected {
	result := agentapi.Collected{Unknown: map[string]string{}}
	for _, part := range []struct {
		name string
		find part
	}{
		{"services", s.collectServices}, {"processes", s.collectProcesses}, {"events", s.eventsSince(maxEventAge, maxEvents)}, {"firewall", s.collectFirewall}, {"networks", s.collectNetworks},
		{"runs", s.collectRuns},
	} {
		collectPart(ctx, part.name, part.find, &result)
	}
	return result
}

// CollectEvents returns only the events of the given period.
func (s Collector) CollectEvents(ctx context.Context, since time.Duration) agentapi.Collected {
	result := agentapi.Collected{Unknown: map[string]string{}}
	collectPart(ctx, "events", s.eventsSince(since, maxEventsOnly), &result)
	count := map[string]int{}
	for _, event := range result.Events {
		if count[event.Log]++; count[event.Log] == maxEventsOnly {
			result.Unknown["earlier events"] = fmt.Sprintf("only the newest %d events of log %s are included", maxEventsOnly, event.Log)
		}
	}
	return result
}

type part func(context.Context, *agentapi.Collected) error

// collectPart collects a part, or records why the part is unknown.
func collectPart(ctx context.Context, name string, find part, result *agentapi.Collected) {
	ctx, cancel := context.WithTimeout(ctx, timeouts.CollectTimeout)
	defer cancel()
	if err := find(ctx, result); err != nil {
		result.Unknown[name] = sanitize.Plain(err.Error(), maxMessageBytes)
	}
}

func (s Collector) collectServices(ctx context.Context, result *agentapi.Collected) error {
	services, err := s.Host.Services.Query(ctx)
	for _, each := range limitEntries(services, maxServices) {
		state := agentapi.ServiceState{Name: each.Name, State: each.State, StartType: each.StartType, PID: each.PID, ExitCode: each.ExitCode}
		if strings.HasPrefix(each.Description, nodespec.DescriptionPrefix) {
			state.CommandLine = each.CommandLine
		}
		result.Services = append(result.Services, state)
	}
	return err
}

func (s Collector) collectProcesses(ctx context.Context, result *agentapi.Collected) error {
	processes, err := s.Host.Processes.List(ctx)
	for _, each := range processes {
		if nodespec.IsWithin(each.Path, nodespec.Root) && len(result.Processes) < maxProcesses {
			result.Processes = append(result.Processes, each)
		}
	}
	return err
}

func (s Collector) collectFirewall(ctx context.Context, result *agentapi.Collected) error {
	rules, err := s.Host.Firewall.Rules(ctx)
	for _, rule := range rules {
		if rule.LocalPort != 0 && len(result.Firewall) < maxRules {
			result.Firewall = append(result.Firewall, rule)
		}
	}
	return err
}

// collectNetworks queries the Host Networking Service, which is part of the Containers feature.
func (s Collector) collectNetworks(ctx context.Context, result *agentapi.Collected) error {
	networks, err := s.Host.Networks.Networks(ctx)
	if err != nil {
		return err
	}
	endpoints, err := s.Host.Networks.Endpoints(ctx)
	result.Networks, result.Endpoints = limitEntries(networks, maxNetworks), limitEntries(endpoints, maxEndpoints)
	return err
}

func (s Collector) collectRuns(ctx context.Context, result *agentapi.Collected) (err error) {
	result.Runs, err = s.Runs(ctx)
	return err
}

// maxEventAge is the maximum age of the events that are collected together with the rest.
const maxEventAge = 7 * 24 * time.Hour

// eventsSince reads the events of the given period, up to the given number per log. An unreadable or slow log
// does not affect the other log.
func (s Collector) eventsSince(since time.Duration, most int) part {
	return func(ctx context.Context, result *agentapi.Collected) error {
		logs := []string{"Application", "System"}
		errs := make([]error, len(logs))
		for i, log := range logs {
			limited, cancel := context.WithTimeout(ctx, timeouts.CollectTimeout/time.Duration(len(logs)))
			found, err := s.eventsOf(limited, log, s.Clock.Now().Add(-since), most)
			if err != nil {
				errs[i] = fmt.Errorf("log %s: %w", log, err)
			}
			result.Events = append(result.Events, found...)
			cancel()
		}
		return errors.Join(errs...)
	}
}

func (s Collector) eventsOf(ctx context.Context, log string, from time.Time, most int) (events []agentapi.Event, err error) {
	err = s.Host.EventLog.Read(ctx, log, func(event host.LoggedEvent) bool {
		if event.Time.Before(from) {
			return false
		}
		if isNodeEvent(event.Event) {
			event.Message = sanitize.Shorten(event.Message, maxMessageBytes)
			events = append(events, agentapi.Event{Log: log, LoggedEvent: event})
		}
		return len(events) < most
	})
	return events, err
}

// serviceInstalled is the ID of the service control manager's event for a new service, which contains its
// command line.
const serviceInstalled = 7045

// isNodeEvent reports whether an event may explain the state of a node: its services; services that stop;
// restarts; disks, the network and the clock. Other events may contain anything about other programs on the
// host. Windows compares source names case-insensitively and uses several spellings of some names.
func isNodeEvent(event host.Event) bool {
	if strings.EqualFold(event.Source, "Service Control Manager") {
		return event.ID != serviceInstalled
	}
	for _, source := range append(nodespec.ServiceNames(),
		"Application Error", "EventLog", "User32", "Microsoft-Windows-Kernel-Power",
		"Microsoft-Windows-WindowsUpdateClient", "Microsoft-Windows-Time-Service", "Disk", "Ntfs", "Microsoft-Windows-Ntfs",
		"Tcpip", "Microsoft-Windows-Hyper-V-VmSwitch", "VfpExt", "HNS",
	) {
		if strings.EqualFold(event.Source, source) {
			return true
		}
	}
	return false
}

func limitEntries[T any](list []T, most int) []T { return list[:min(len(list), most)] }
