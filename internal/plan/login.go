package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// LoginFacts describe the Windows service of the operator's sessions: the ancestor of the agent's own process,
// regardless of the SSH server. In the agent's own service, LoginFacts are empty.
type LoginFacts struct {
	Service string `json:"service,omitempty"`
	// StartType is the start type of the service.
	StartType host.StartType `json:"startType,omitempty"`
	// Unknown is the reason why the service cannot be determined; empty for none.
	Unknown string `json:"unknown,omitempty"`
}

// FindLogin follows the parents of a process up to the service from which the process descends. A process with an
// ended parent has no known parent: Windows may reuse the parent's ID for another process, with a later start time.
func FindLogin(self int, processes []host.Process, services []host.Service) LoginFacts {
	byID := map[int]host.Process{}
	for _, process := range processes {
		byID[process.PID] = process
	}
	unknown := func(format string, arguments ...any) LoginFacts {
		return LoginFacts{Unknown: fmt.Sprintf(format, arguments...)}
	}
	present, there := byID[self]
	if !there {
		return unknown("the agent's process %d is not in the list of processes", self)
	}
	for range byID {
		switch running := servicesOf(present.PID, services); {
		case len(running) > 1:
			return unknown("process %d (%s), from which the agent descends, runs several services: %s",
				present.PID, present.Name, strings.Join(serviceNames(running), ", "))
		case len(running) == 1 && strings.EqualFold(running[0].Name, nodespec.ServiceAgent):
			return LoginFacts{}
		case len(running) == 1:
			return LoginFacts{Service: running[0].Name, StartType: running[0].StartType}
		}
		parent, there := byID[present.Parent]
		if !there || parent.PID == present.PID || parent.Started.After(present.Started) {
			return unknown("the parent of process %d (%s), from which the agent descends, has ended", present.PID,
				present.Name)
		}
		present = parent
	}
	return unknown("process %d (%s) descends from itself", present.PID, present.Name)
}

// servicesOf returns the services that a process runs.
func servicesOf(pid int, services []host.Service) []host.Service {
	return slices.DeleteFunc(slices.Clone(services), func(service host.Service) bool {
		return pid == 0 || service.PID != pid || service.State == host.ServiceStopped
	})
}

func serviceNames(services []host.Service) []string {
	list := make([]string, len(services))
	for i, service := range services {
		list[i] = service.Name
	}
	return list
}

// isStartedAtBoot reports whether the operator can log in again after a restart, as far as known.
func (f LoginFacts) isStartedAtBoot() bool {
	return f.Service == "" || f.StartType == "" || f.StartType == host.StartAutomatic
}

// setLoginStart sets the login service to start at boot, before a step restarts the host.
func (m *planner) setLoginStart() { m.steps = append(m.steps, loginStart(m.facts.Login)...) }

func loginStart(login LoginFacts) []Step {
	if login.isStartedAtBoot() {
		return nil
	}
	operation := SetStartType{Service: login.Service, StartType: host.StartAutomatic}
	return []Step{{
		Name: Name(operation), Operation: operation,
		Reason: fmt.Sprintf("service %s, through which the operator logs in, does not start at boot: its start type is %s",
			login.Service, login.StartType),
	}}
}

// RecordLogin adds the start type of the login service to the ledger if the start type must be changed.
func RecordLogin(ledger Ledger, login LoginFacts) Ledger {
	if login.isStartedAtBoot() {
		return ledger
	}
	ledger.StartTypes = addMissing(ledger.StartTypes, []string{login.Service},
		func(string) host.StartType { return login.StartType })
	return ledger
}

// restoreStartTypes restores the start types of services.
func (r *restorePlanner) restoreStartTypes() {
	for _, name := range slices.Sorted(maps.Keys(r.facts.Ledger.StartTypes)) {
		before := r.facts.Ledger.StartTypes[name]
		if fact, there := r.facts.findService(name); there && fact.StartType != before {
			r.addStep(SetStartType{Service: name, StartType: before}, false)
		}
	}
}
