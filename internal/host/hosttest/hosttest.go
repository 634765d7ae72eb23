// Package hosttest implements the behavior contract of package host: one suite that every implementation passes, on
// the machine in memory, on the test hosts under Wine and on a real Windows Server.
//
// On a real machine the suite changes only the following, and restores the original state: the directory
// C:\wmco-contract-test, services, rules, networks and variables with the name prefix "wmco-contract-", the optional
// feature TelnetClient, briefly the pending computer name, two expired certificates among the trusted roots, and
// routes to addresses reserved for documentation. The registry key HKLM\SOFTWARE\wmco-contract-test is left behind
// empty. The suite restarts the machine only on demand (ArmReboot).
//
// A behavior is a sentence about one method of one interface. A Mark with a reason declares a behavior that an
// environment cannot show. The suite tries such a behavior anyway and reports a success. The results are a Report.
package hosttest

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Scratch is the working directory of the suite. It is empty at the start of each behavior and removed at the end.
const Scratch = `C:\wmco-contract-test`

const (
	serviceOne  = "wmco-contract-one"
	serviceTwo  = "wmco-contract-two"
	ruleName    = "wmco-contract-rule"
	networkName = "wmco-contract-network"
	variable    = "WMCO_CONTRACT_TEST"
	eventSource = "wmco-contract-source"
)

// Machine is the host under test, with all further dependencies of the suite.
type Machine struct {
	Host     host.Host
	Programs Programs
	// ServeHTTP answers HTTP on the machine until the test ends. The address has no path: http://127.0.0.1:47000.
	ServeHTTP func(handler http.Handler) (address string, err error)
	// ServeRuntime answers as a container runtime on the machine until the test ends.
	ServeRuntime func(status host.RuntimeStatus) (endpoint string, err error)
	// CreateNetwork creates an HNS network, which the product itself never does. An ErrNotRun states why the machine
	// does not support networks.
	CreateNetwork func(ctx context.Context, network host.HNSNetwork) error
	// StartAntivirus activates Microsoft Defender Antivirus for one behavior. It is nil if Defender is already active
	// or cannot be started.
	StartAntivirus func(ctx context.Context) error
	// StopAntivirus stops Microsoft Defender Antivirus for one behavior. It is nil if that is impossible, as on a
	// real Windows.
	StopAntivirus func(ctx context.Context) error
	// FailList makes a list enumerated through COM ("firewall", "wmi") fail with a code after the given number of
	// items. It is nil if failures cannot be simulated, as on a real Windows.
	FailList func(list string, after int, code uint32) (restore func())
	// Vanish simulates another program that deletes an HNS network or endpoint during the next call: during a list or
	// after it. code is the error code for an object that does not exist; 0 selects HNS' own. Vanish is nil if that
	// is impossible, as on a real Windows.
	Vanish func(name string, code uint32, afterList bool) (vanished func() bool)
	// OpenLog opens a file for appending, as Go programs open logs. The suite closes the file.
	OpenLog func(path string) (io.WriteCloser, error)
	// SetUserOwner sets a non-administrator as the owner of a directory. It is nil if the suite cannot do that.
	SetUserOwner func(ctx context.Context, path string) error
	// OpenToAll grants everyone full access to a directory by a protected null access list. It is nil if the suite
	// cannot do that.
	OpenToAll func(ctx context.Context, path string) error
	// AddOutboundRule adds an outbound rule to the firewall until the test ends, and returns a function that reports
	// whether the rule exists. It is nil if the suite cannot do that.
	AddOutboundRule func(ctx context.Context, name string) (remains func() (bool, error), err error)
	// ClearLog clears an event log. It is nil if the suite must not do that, as on a real Windows.
	ClearLog func(log string) error
	// Platform is the cloud platform of the machine, if the platform has a metadata service.
	Platform string
}

// Programs are the command words of programs that run as Windows services until they are stopped.
type Programs struct {
	// Idle does nothing.
	Idle []string
	// Failing soon stops by itself and reports the exit code 7 to the service control manager.
	Failing []string
	// Reporting writes its Account as JSON to the file in its last argument. The suite adds that argument.
	Reporting []string
	// Parent starts a process of the program Idle and stops the process when it ends itself.
	Parent []string
}

// Account contains the arguments and the environment of a reporting program.
type Account struct {
	Arguments   []string `json:"arguments"`   // all, without the program
	Environment []string `json:"environment"` // NAME=value
}

// Subject is an implementation in its environment.
type Subject struct {
	Environment Environment
	// Marks declare behaviors that differ from Windows or are missing. A behavior without a mark must hold.
	Marks []Mark
	// Open returns the machine for one behavior. The process behind the host must outlive the test.
	Open func(t *testing.T) Machine
}

// Behaviors returns the complete contract except RebootBehaviors, sorted by interface.
func Behaviors() []Behavior {
	var all []Behavior
	for _, group := range [][]Behavior{
		systemBehaviors(), hostNameBehaviors(),
		featureBehaviors(),
		serviceBehaviors(), configurationBehaviors(), startedBehaviors(), startBehaviors(), stopBehaviors(),
		dependencyBehaviors(), recoveryBehaviors(),
		fileBehaviors(), writeBehaviors(), accessBehaviors(), inUseBehaviors(),
		directoryBehaviors(), renameBehaviors(), linkBehaviors(),
		environmentBehaviors(),
		firewallBehaviors(),
		networkBehaviors(), endpointBehaviors(), vanishingBehaviors(),
		processBehaviors(),
		httpProbeBehaviors(), runtimeProbeBehaviors(), sandboxBehaviors(), layerBehaviors(),
		eventLogBehaviors(),
		antivirusBehaviors(), failingListBehaviors(),
		outboundBehaviors(),
		rootsBehaviors(), routesBehaviors(), logsBehaviors(), metadataBehaviors(),
		registryBehaviors(),
		cancelBehaviors(),
	} {
		all = append(all, group...)
	}
	return all
}
