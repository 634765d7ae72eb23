// Package robustness searches for unforeseen bugs. From a seed it generates a list of actions: actions of
// administrators, and faults of operator, API server and hosts. It plays the list on a real control plane with
// simulated hosts, then ends all faults. Finally it checks the history against the rules that always hold, and the
// final state against the desired state. The list of a failing run is shrunk to the actions that make the run fail.
//
// Not judged yet: nodes that are only NotReady after a disruption whose entry has ended; a summary that alternates
// between values; a cordon or restart without an entry on a node that the operator has tainted before. Of the hosts
// of a MachineSet only the youngest has faults. Kubelet keys are searched for only if they were on a drive when the
// host was unlisted, reinstalled or scaled down, or at the end.
//
// The same seed generates the same list. The interleaving of goroutines and processes is not part of the list: an
// intermittent failure stays intermittent.
package robustness

import (
	"encoding/json"
	"time"
)

// Kind is the name of a kind of actions.
type Kind string

// Actions of administrators.
const (
	ListHost       Kind = "list-host"       // adds Host to windows-instances
	UnlistHost     Kind = "unlist-host"     // removes Host from windows-instances
	WrongEntry     Kind = "wrong-entry"     // the entry of Host has another user for a time
	InvalidEntry   Kind = "invalid-entry"   // windows-instances has an invalid entry for a time
	PauseHost      Kind = "pause-host"      // the instance of Host is paused for a time
	PausePolicy    Kind = "pause-policy"    // all disruptions are paused for a time
	MaxUnavailable Kind = "max-unavailable" // the policy allows Number nodes at a time
	Reboot         Kind = "reboot"          // the Node of Host is annotated
	Retry          Kind = "retry"           // the instance of Host is annotated
	DeleteInstance Kind = "delete-instance" // deletes the object, which must not change any host
	DeleteNode     Kind = "delete-node"     // the Node of Host, which stays listed
	Cordon         Kind = "cordon"          // the user cordons the Node of Host
	Uncordon       Kind = "uncordon"        // and uncordons it
	Setting        Kind = "setting"         // the workers' kubelets accept at most Number pods
	RotateKey      Kind = "rotate-key"      // the Secret also keeps the former key
	Release        Kind = "release"         // the operator's release number Number
	Scale          Kind = "scale"           // the MachineSet has Number Machines
	KeepPods       Kind = "keep-pods"       // the budget of the pods allows no eviction for a time
	Await          Kind = "await"           // waits for the desired state for at most a time
)

// Faults.
const (
	KillOperator   Kind = "kill-operator"   // killed, and restarted after a time
	StopOperator   Kind = "stop-operator"   // the same with SIGTERM
	StaleStart     Kind = "stale-start"     // killed, and restarted with caches of Resource from Number actions ago, without watch events for a time
	SecondOperator Kind = "second-operator" // two run for a time; they are independent unless they elect a leader
	RestartAPI     Kind = "restart-api"     // the full control plane
	CutAPI         Kind = "cut-api"         // unreachable for the operator
	DelayWatches   Kind = "delay-watches"   // of Resource, by Number milliseconds
	HoldWatches    Kind = "hold-watches"    // of Resource
	BreakWatches   Kind = "break-watches"   // of Resource
	FailRequests   Kind = "fail-requests"   // for Resource, each Number-th
	Conflicts      Kind = "conflicts"       // for Resource, each Number-th change
	LoseAnswers    Kind = "lose-answers"    // for Resource, each Number-th
	HostFault      Kind = "host-fault"      // the fault Text of package winhost
	PowerOff       Kind = "power-off"       // Host is off for a time
	CrashService   Kind = "crash-service"   // Text, on Host
	WrongClock     Kind = "wrong-clock"     // of Host, by Number seconds
	MoveHost       Kind = "move-host"       // Host has another address after a restart, and its name resolves to it
	Reinstall      Kind = "reinstall"       // Windows on Host is reinstalled, and its administrator accepts the new host key
	ForgeRequest   Kind = "forge-request"   // an attacker on Host requests a certificate with the name, address, URI or user name Text
)

// Action is one action of an administrator, or one fault.
type Action struct {
	// Pause is the time before the action, and For its duration, if it has one.
	Pause time.Duration `json:"pause"`
	Kind  Kind          `json:"kind"`
	For   time.Duration `json:"for,omitempty"`
	// Host is the computer name of a host, or youngestMachine; Resource is a resource as in package apiproxy, "" for
	// all.
	Host     string `json:"host,omitempty"`
	Resource string `json:"resource,omitempty"`
	Text     string `json:"text,omitempty"`
	Number   int    `json:"number,omitempty"`
}

// String returns the action as a line of a Script.
func (a Action) String() string {
	text, err := json.Marshal(a)
	if err != nil {
		return err.Error() // impossible for strings and numbers
	}
	return string(text)
}
