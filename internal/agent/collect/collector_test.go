package collect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestIsNodeEvent_ExcludesEventsWithForeignSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		source   string
		id       uint32
		reported bool
	}{
		"of the agent":                             {nodespec.ServiceAgent, 2, true},
		"of a service that has ended":              {"Service Control Manager", 7034, true},
		"not of a new service, in another case":    {"service control manager", 7045, false},
		"of a disk, in another case":               {"disk", 7, true},
		"of a restart":                             {"User32", 1074, true},
		"not of a new service and its command":     {"Service Control Manager", 7045, false},
		"not of a program that is no part of ours": {"Some Database", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isNodeEvent(host.Event{Source: c.source, ID: c.id}); got != c.reported {
				t.Errorf("it is reported: %t", got)
			}
		})
	}
}

// logs are the event logs of a host with one unreadable log.
type logs struct {
	host.EventLog

	broken string
	at     time.Time
}

func (l logs) Read(_ context.Context, log string, each func(host.LoggedEvent) bool) error {
	if log == l.broken {
		return errors.New("the log is damaged")
	}
	each(host.LoggedEvent{Time: l.at, Event: host.Event{Source: nodespec.ServiceAgent, Message: "of " + log}})
	return nil
}

func TestEventsSince_UnreadableLogDoesNotHideOther(t *testing.T) {
	now := time.Unix(1<<30, 0)
	for broken, other := range map[string]string{"Application": "System", "System": "Application"} {
		t.Run(broken, func(t *testing.T) {
			s := Collector{Host: host.Host{EventLog: logs{broken: broken, at: now}}, Clock: clocktesting.NewFakePassiveClock(now)}
			var found agentapi.Collected
			if err := s.eventsSince(maxEventAge, maxEvents)(t.Context(), &found); err == nil || err.Error() != "log "+broken+": the log is damaged" {
				t.Errorf("it says %v", err)
			}
			if len(found.Events) != 1 || found.Events[0].Log != other {
				t.Errorf("it has found %+v", found.Events)
			}
		})
	}
}

// fullResult returns a result with the maximum number of entries in each part, and the given event message and
// service command line.
func fullResult(message, commandLine string) *agentapi.Result {
	s := &agentapi.Collected{Unknown: map[string]string{}}
	for i := range maxServices {
		s.Services = append(s.Services, agentapi.ServiceState{Name: fmt.Sprint("service-", i), State: "Stopped", StartType: "Manual", PID: i + 1, ExitCode: i + 1,
			CommandLine: commandLine})
	}
	for i := range maxProcesses {
		s.Processes = append(s.Processes, host.Process{PID: i, Path: `C:\k\kubelet.exe`})
	}
	for i := range maxNetworks {
		s.Networks = append(s.Networks, host.HNSNetwork{Name: fmt.Sprint("network-", i)})
	}
	for i := range maxEndpoints {
		s.Endpoints = append(s.Endpoints, host.HNSEndpoint{Name: fmt.Sprint("endpoint-", i), Address: "10.132.1.2"})
	}
	for i := range maxRules {
		s.Firewall = append(s.Firewall, host.FirewallRule{Name: fmt.Sprint("rule-", i), LocalPort: i})
	}
	for _, log := range []string{"Application", "System"} {
		for i := range maxEvents {
			s.Events = append(s.Events, agentapi.Event{Log: log, LoggedEvent: host.LoggedEvent{Time: time.Unix(int64(1<<30-i), 0).UTC(),
				Event: host.Event{Source: "Tcpip", Message: message}}})
		}
	}
	return &agentapi.Result{Collected: s}
}

func TestFit_LimitsLineLength(t *testing.T) {
	for name, c := range map[string]struct {
		message, commandLine string
		shortened            []string
		events               bool // some events are left
	}{
		"all that is reported":               {"", "", []string{"events"}, true},
		"events with many values":            {strings.Repeat("a,", maxMessageBytes/2), "", []string{"events"}, true},
		"events with many bytes":             {strings.Repeat("終", 1200), "", []string{"events"}, true},
		"services with many values, besides": {"", "a,b,c,d,e,f,g", []string{"events", "networks"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			result := fullResult(c.message, c.commandLine)
			Fit(result)
			s := result.Collected
			line, err := agentapi.Line{Type: agentapi.TypeResult, Result: result}.Encode()
			if err != nil || len(line) > agentapi.MaxLineBytes || agentapi.CountValues(line) > agentapi.MaxLineValues {
				t.Errorf("the line has %d bytes and %d values, %v", len(line), agentapi.CountValues(line), err)
			}
			if len(s.Unknown) != len(c.shortened) {
				t.Errorf("it says %v", s.Unknown)
			}
			for _, part := range c.shortened {
				if !strings.Contains(s.Unknown[part], "omitted to limit") {
					t.Errorf("of %s it says %q", part, s.Unknown[part])
				}
			}
			if len(s.Services) != maxServices || (len(s.Events) > 0) != c.events {
				t.Errorf("it has %d services and %d events", len(s.Services), len(s.Events))
			}
			for i := 1; i < len(s.Events); i++ {
				if s.Events[i].Time.After(s.Events[i-1].Time) {
					t.Fatal("the oldest events are not those that are left out")
				}
			}
		})
	}
}

func TestFit_ShortResultUnchanged(t *testing.T) {
	result := &agentapi.Result{Collected: &agentapi.Collected{Events: []agentapi.Event{{Log: "Application"}, {Log: "System"}}}}
	Fit(result)
	if len(result.Collected.Events) != 2 || len(result.Collected.Unknown) > 0 {
		t.Errorf("it is %+v", result.Collected)
	}
}
