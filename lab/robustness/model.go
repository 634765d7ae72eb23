package robustness

import (
	"slices"
	"time"
)

// Shape is the environment of a run.
type Shape struct {
	// Hosts are the computer names of all hosts. The first Listed are listed at the start.
	Hosts  []string `json:"hosts"`
	Listed int      `json:"listed"`
	// Named are the hosts that windows-instances lists by a DNS name.
	Named []string `json:"named,omitempty"`
	// Impostor is the host with the computer name of a Linux node, which may never become a node; "" for none.
	Impostor string `json:"impostor,omitempty"`
	// Machines is the number of Machines of the MachineSet at the start; if it is 0, there is no Machine API.
	Machines int `json:"machines,omitempty"`
	// Elects is true if operators elect a leader.
	Elects bool `json:"elects,omitempty"`
	// Releases is the number of releases of the operator.
	Releases int `json:"releases"`
	// Actions is the number of actions that Generate creates.
	Actions int `json:"actions,omitempty"`
}

// youngestMachine stands for the host of the Machine that the MachineSet has created last.
const youngestMachine = "the youngest Machine"

// Model is the state requested by administrators. Faults do not change it.
type Model struct {
	// Listed are hosts by computer name.
	Listed map[string]bool
	// MaxUnavailable is the limit in the policy.
	MaxUnavailable int
	// MaxPods is the setting of the workers' kubelets, 0 if unset.
	MaxPods int
	// Machines is the desired number of Machines of the MachineSet.
	Machines int
	// Release is the number of the operator's release.
	Release int
	// Rotated is true if the SSH key was changed.
	Rotated bool
}

// NewModel returns the requested state at the start.
func NewModel(s Shape) *Model {
	m := &Model{Listed: map[string]bool{}, MaxUnavailable: 1, Machines: s.Machines}
	for _, host := range s.Hosts[:s.Listed] {
		m.Listed[host] = true
	}
	return m
}

// Apply applies an action to the requested state.
func (m *Model) Apply(a Action) {
	switch a.Kind {
	case ListHost:
		m.Listed[a.Host] = true
	case UnlistHost:
		delete(m.Listed, a.Host)
	case MaxUnavailable:
		m.MaxUnavailable = a.Number
	case Setting:
		m.MaxPods = a.Number
	case Scale:
		m.Machines = a.Number
	case Release:
		m.Release = a.Number
	case RotateKey:
		m.Rotated = true
	}
}

// listedHosts returns the listed hosts, and unlisted the remaining hosts, in the order of the shape.
func (m *Model) listedHosts(s Shape) []string { return m.hostsWhere(s, true) }

func (m *Model) unlistedHosts(s Shape) []string { return m.hostsWhere(s, false) }

func (m *Model) hostsWhere(s Shape, listed bool) []string {
	return slices.DeleteFunc(slices.Clone(s.Hosts), func(host string) bool { return m.Listed[host] != listed })
}

// Length returns the total pauses of the actions, without their own run time.
func Length(actions []Action) (total time.Duration) {
	for _, a := range actions {
		total += a.Pause
	}
	return total
}
