package testenv

import (
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// serviceChange is a start or stop of a host's kubelet or containerd.
type serviceChange struct {
	at      time.Time
	host    string // the key of hostKey
	service string // "" for all
	running bool
}

// hostKey returns the key used to count a host: its Machine, or the name of its node.
func hostKey(h *Host) string {
	if machine := h.MachineName(); machine != "" {
		return kindMachine + "/" + machine
	}
	return h.NodeName()
}

// nodeServices are the services that a node needs to run pods.
var nodeServices = []string{"kubelet", "containerd"}

// serviceChanges returns the starts and stops of services on all hosts since the beginning, by time.
func (a *Availability) serviceChanges() []serviceChange {
	var all []serviceChange
	for _, h := range append(a.env.Hosts(), a.env.MachineHosts()...) {
		for _, entry := range h.Machine().Journal().Entries(nil) {
			if entry.Time.Before(a.started) {
				continue
			}
			if service, running, ok := serviceState(entry); ok {
				all = append(all, serviceChange{entry.Time, hostKey(h), service, running})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y serviceChange) int { return x.at.Compare(y.at) })
	return all
}

// serviceState parses the start or stop of a service of nodeServices, or of the machine with all of them, from a
// journal entry.
func serviceState(entry fake.Entry) (service string, running, ok bool) {
	if entry.Kind == fake.KindPower {
		return "", false, entry.Detail == "power off"
	}
	if entry.Kind != fake.KindService {
		return "", false, false
	}
	for _, service := range nodeServices {
		switch {
		case entry.Detail == service+" runs":
			return service, true, true
		case entry.Detail == "Stop "+service, strings.HasPrefix(entry.Detail, "crash "+service+","):
			return service, false, true
		}
	}
	return "", false, false
}
