package robustness

import (
	"slices"
	"time"
)

// Shape is what a run has to play with.
type Shape struct {
	// Hosts are the computer names of all hosts. The first Listed are listed at the start.
	Hosts  []string `json:"hosts"`
	Listed int      `json:"listed"`
	// Named are those that windows-instances lists by a DNS name.
	Named []string `json:"named,omitempty"`
	// Impostor is the host among them with the computer name of a Linux node, which may never become a node; "" without.
	Impostor string `json:"impostor,omitempty"`
	// Machines is how many Machines a MachineSet has at the start; without one, if 0, there is no Machine API.
	Machines int `json:"machines,omitempty"`
	// Elects is true when operators elect a leader.
	Elects bool `json:"elects,omitempty"`
	// Releases is how many releases of the operator there are.
	Releases int `json:"releases"`
	// Actions is how many Generate makes.
	Actions int `json:"actions,omitempty"`
}

// youngestMachine names, in place of a computer name, the host of the Machine that the MachineSet has made last.
const youngestMachine = "the youngest Machine"

// Model is what administrators have asked for. Faults change nothing of it.
type Model struct {
	// Listed are hosts by computer name.
	Listed map[string]bool
	// MaxUnavailable is the policy's.
	MaxUnavailable int
	// MaxPods is the setting of the workers' kubelets, 0 without one.
	MaxPods int
	// Machines is how many the MachineSet is to have.
	Machines int
	// Release is the operator's.
	Release int
	// Rotated is true when the SSH key was changed.
	Rotated bool
}

// NewModel is what is asked for at the start.
func NewModel(s Shape) *Model {
	m := &Model{Listed: map[string]bool{}, MaxUnavailable: 1, Machines: s.Machines}
	for _, host := range s.Hosts[:s.Listed] {
		m.Listed[host] = true
	}
	return m
}

// Apply makes an action part of what is asked for.
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

// listed returns the listed hosts, and unlisted the others, in the order of the shape.
func (m *Model) listed(s Shape) []string { return m.where(s, true) }

func (m *Model) unlisted(s Shape) []string { return m.where(s, false) }

func (m *Model) where(s Shape, listed bool) []string {
	return slices.DeleteFunc(slices.Clone(s.Hosts), func(host string) bool { return m.Listed[host] != listed })
}

// Length returns how long the actions take, without the time that they need themselves.
func Length(actions []Action) (total time.Duration) {
	for _, a := range actions {
		total += a.Pause
	}
	return total
}
