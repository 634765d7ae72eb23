package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// LoginFacts are the Windows service that the operator's sessions come through: the one that the agent's own process
// descends from, whichever SSH server it is. In the agent's own service they are empty.
type LoginFacts struct {
	Service string `json:"service,omitempty"`
	// StartType is when Windows starts it.
	StartType host.StartType `json:"startType,omitempty"`
	// Unknown is why it cannot be found; empty when it can.
	Unknown string `json:"unknown,omitempty"`
}

// FindLogin follows the parents of a process up to the service that it descends from. A process whose parent has ended
// shows no parent: Windows gives the parent's ID to another process, which then began later.
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
				present.PID, present.Name, strings.Join(names(running), ", "))
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

func names(services []host.Service) []string {
	list := make([]string, len(services))
	for i, service := range services {
		list[i] = service.Name
	}
	return list
}

// startsAtBoot reports whether the operator can log in again after a restart, as far as is known.
func (f LoginFacts) startsAtBoot() bool {
	return f.Service == "" || f.StartType == "" || f.StartType == host.StartAutomatic
}

// setLoginStart has the service through which the operator logs in start at boot, before anything restarts the host.
func (m *maker) setLoginStart() { m.steps = append(m.steps, loginStart(m.facts.Login)...) }

func loginStart(login LoginFacts) []Step {
	if login.startsAtBoot() {
		return nil
	}
	operation := SetStartType{Service: login.Service, StartType: host.StartAutomatic}
	return []Step{{
		Name: Name(operation), Operation: operation,
		Reason: fmt.Sprintf("service %s, through which the operator logs in, does not start at boot: its start type is %s",
			login.Service, login.StartType),
	}}
}

// RecordLogin adds the start type of the service through which the operator logs in to the ledger, where that is to be
// set.
func RecordLogin(ledger Ledger, login LoginFacts) Ledger {
	if login.startsAtBoot() {
		return ledger
	}
	ledger.StartTypes = remember(ledger.StartTypes, []string{login.Service},
		func(string) host.StartType { return login.StartType })
	return ledger
}

// startTypes gives services their start type back.
func (r *restorer) startTypes() {
	for _, name := range slices.Sorted(maps.Keys(r.facts.Ledger.StartTypes)) {
		before := r.facts.Ledger.StartTypes[name]
		if fact, there := r.facts.service(name); there && fact.StartType != before {
			r.add(SetStartType{Service: name, StartType: before}, false)
		}
	}
}
