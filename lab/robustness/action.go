// Package robustness searches for bugs that nobody has thought of. From a seed it makes a list of actions: what
// administrators do, and what goes wrong with operator, API server and hosts. It plays the list on a real control plane
// with simulated hosts, has everything mended, and compares what has happened with what must hold always, and what is
// there in the end with what was asked for. The list of a failing run is shrunk to the actions that make it fail.
//
// Not judged yet: nodes that are only NotReady after a disturbance whose entry has ended; a summary that goes back and forth; a cordon or restart without an entry on a node
// that the operator has tainted before. Of the hosts of a MachineSet only the youngest has faults, and kubelet keys are
// looked for only if they were on a drive when its host was unlisted, installed anew or scaled away, or in the end.
//
// The same seed makes the same list. How goroutines and processes meet is not in the list: a run that fails once in a
// while fails again once in a while.
package robustness

import (
	"encoding/json"
	"time"
)

// Kind names what an action does.
type Kind string

// What administrators do.
const (
	ListHost       Kind = "list-host"       // Host comes into windows-instances
	UnlistHost     Kind = "unlist-host"     // Host goes from it
	WrongEntry     Kind = "wrong-entry"     // the entry of Host has another user for a time
	InvalidEntry   Kind = "invalid-entry"   // windows-instances has an invalid entry for a time
	PauseHost      Kind = "pause-host"      // the instance of Host is paused for a time
	PausePolicy    Kind = "pause-policy"    // all disruptions are paused for a time
	MaxUnavailable Kind = "max-unavailable" // the policy allows Number nodes at a time
	Reboot         Kind = "reboot"          // the Node of Host is annotated
	Retry          Kind = "retry"           // the instance of Host is annotated
	DeleteInstance Kind = "delete-instance" // the object is deleted, by which no host is meant to change
	DeleteNode     Kind = "delete-node"     // the Node of Host, which stays listed
	Cordon         Kind = "cordon"          // the user makes the Node of Host unschedulable
	Uncordon       Kind = "uncordon"        // and schedulable
	Setting        Kind = "setting"         // the workers' kubelets get Number pods at most
	RotateKey      Kind = "rotate-key"      // and the Secret keeps the former key
	Release        Kind = "release"         // the operator's release number Number
	Scale          Kind = "scale"           // the MachineSet has Number Machines
	KeepPods       Kind = "keep-pods"       // the budget of the pods allows no eviction for a time
	Await          Kind = "await"           // they wait for at most a time until all is as they have asked for
)

// What goes wrong.
const (
	KillOperator   Kind = "kill-operator"   // it is killed, and starts again after a time
	StopOperator   Kind = "stop-operator"   // the same with SIGTERM
	StaleStart     Kind = "stale-start"     // it is killed, and starts with caches of Resource as they were Number actions ago, which hear of nothing for a time
	SecondOperator Kind = "second-operator" // two run for a time; none knows of the other, unless they elect a leader
	RestartAPI     Kind = "restart-api"     // the whole control plane
	CutAPI         Kind = "cut-api"         // the operator does not reach it
	DelayWatches   Kind = "delay-watches"   // of Resource, by Number milliseconds
	HoldWatches    Kind = "hold-watches"    // of Resource
	BreakWatches   Kind = "break-watches"   // of Resource
	FailRequests   Kind = "fail-requests"   // about Resource, each Number-th
	Conflicts      Kind = "conflicts"       // about Resource, each Number-th change
	LoseAnswers    Kind = "lose-answers"    // about Resource, each Number-th
	HostFault      Kind = "host-fault"      // the fault Text of package winhost
	PowerOff       Kind = "power-off"       // Host is off for a time
	CrashService   Kind = "crash-service"   // Text, on Host
	WrongClock     Kind = "wrong-clock"     // of Host, by Number seconds
	MoveHost       Kind = "move-host"       // Host has another address after a restart, and its name leads there
	Reinstall      Kind = "reinstall"       // Host gets a new Windows, and its administrator accepts the new host key
	ForgeRequest   Kind = "forge-request"   // whoever controls Host asks for a certificate with the name, address, URI or user name Text
)

// Action is one thing that an administrator does, or that goes wrong.
type Action struct {
	// Pause is the time before it, and For how long it lasts, where it ends.
	Pause time.Duration `json:"pause"`
	Kind  Kind          `json:"kind"`
	For   time.Duration `json:"for,omitempty"`
	// Host is a host's computer name, or youngestMachine; Resource is as in package apiproxy, "" for all.
	Host     string `json:"host,omitempty"`
	Resource string `json:"resource,omitempty"`
	Text     string `json:"text,omitempty"`
	Number   int    `json:"number,omitempty"`
}

// String returns the action as a line of a Script.
func (a Action) String() string {
	text, err := json.Marshal(a)
	if err != nil {
		return err.Error() // it has strings and numbers only
	}
	return string(text)
}
