// Package hosttest is the behavior contract of package host: one suite that every implementation passes, on the machine
// in memory, on the test hosts under Wine and on a real Windows Server. On a real machine it touches only the folder
// C:\wmco-contract-test, the registry key HKLM\SOFTWARE\wmco-contract-test, which it leaves behind empty, services,
// rules, networks and variables whose names begin with "wmco-contract-", the optional
// feature TelnetClient and, for a moment, the pending computer name, two expired certificates among the trusted roots
// and routes to addresses that are kept for documentation; it gives all of it back. It restarts the machine only on
// demand (ArmReboot).
//
// A behavior is a sentence about one method of one interface. A Mark with a reason declares a behavior that an
// environment cannot show; the suite tries it anyway and reports when it works. The results are a Report.
package hosttest

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Scratch is the folder in which the suite works. Every behavior finds it empty and takes it away.
const Scratch = `C:\wmco-contract-test`

const (
	serviceOne  = "wmco-contract-one"
	serviceTwo  = "wmco-contract-two"
	ruleName    = "wmco-contract-rule"
	networkName = "wmco-contract-network"
	variable    = "WMCO_CONTRACT_TEST"
	eventSource = "wmco-contract-source"
)

// Machine is the host under test, with everything else that the suite needs.
type Machine struct {
	Host     host.Host
	Programs Programs
	// ServeHTTP answers HTTP on the machine until the test ends. The address has no path: http://127.0.0.1:47000.
	ServeHTTP func(handler http.Handler) (address string, err error)
	// ServeRuntime answers as a container runtime on the machine until the test ends.
	ServeRuntime func(status host.RuntimeStatus) (endpoint string, err error)
	// CreateNetwork makes an HNS network, which the product leaves to others. An ErrNotRun says why the machine cannot
	// have one.
	CreateNetwork func(ctx context.Context, network host.HNSNetwork) error
	// StartAntivirus lets Microsoft Defender Antivirus be at work for one behavior. Nil where it is, and where that cannot
	// be done.
	StartAntivirus func(ctx context.Context) error
	// StopAntivirus ends Microsoft Defender Antivirus for one behavior. Nil where that cannot be done, as on a real
	// Windows.
	StopAntivirus func(ctx context.Context) error
	// FailList lets a list that is enumerated through COM ("firewall", "wmi") fail with a code after so many items. Nil
	// where nothing fails on request, as on a real Windows.
	FailList func(list string, after int, code uint32) (mend func())
	// Vanish has another program delete an HNS network or endpoint under the next call: while it is listed, or afterwards.
	// code belongs to an object that does not exist; 0 selects HNS' own. Nil where that cannot be done, as on a real Windows.
	Vanish func(name string, code uint32, afterList bool) (vanished func() bool)
	// OpenLog opens a file to append to it, as Go's programs open their logs. The suite closes it.
	OpenLog func(path string) (io.WriteCloser, error)
	// GiveToUser makes an account that is no administrator the owner of a folder. Nil where the suite cannot do that.
	GiveToUser func(ctx context.Context, path string) error
	// OpenToAll lets everyone do everything with a folder, by a protected null access list. Nil where the suite cannot do
	// that.
	OpenToAll func(ctx context.Context, path string) error
	// AddOutboundRule adds an outbound rule to the firewall until the test ends, and returns a function that reports
	// whether the rule is there. Nil where the suite cannot do that.
	AddOutboundRule func(ctx context.Context, name string) (remains func() (bool, error), err error)
	// ClearLog clears an event log. Nil where the suite must not, as on a real Windows.
	ClearLog func(log string) error
	// Platform is the cloud that the machine is in, if it has a metadata service.
	Platform string
}

// Programs are the words of commands that run as Windows services until they are stopped.
type Programs struct {
	// Idle does nothing.
	Idle []string
	// Failing soon stops by itself and tells the service control manager the exit code 7.
	Failing []string
	// Reporting writes an Account of itself, as JSON, to the file that its last argument names. The suite adds that
	// argument.
	Reporting []string
	// Parent starts one more process of the program Idle, and ends it with itself.
	Parent []string
}

// Account is what a reporting program was started with.
type Account struct {
	Arguments   []string `json:"arguments"`   // all, without the program
	Environment []string `json:"environment"` // NAME=value
}

// Subject is an implementation in its environment.
type Subject struct {
	Environment Environment
	// Marks declare what is not shown here as it is on Windows. A behavior without a mark must hold.
	Marks []Mark
	// Open returns the machine for one behavior. The process behind the host must outlive the test.
	Open func(t *testing.T) Machine
}

// Behaviors returns the whole contract, sorted by interface, without what needs a reboot (RebootBehaviors).
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
