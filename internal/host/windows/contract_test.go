//go:build windows

package windows

import (
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/hosttest"
)

// The contract suite changes the machine, so it runs only if a flag specifies the environment.
var contract struct {
	environment, results, reboot, platform string
}

// TestMain runs the tests, or a Windows service that the contract suite starts.
func TestMain(m *testing.M) {
	if name, is := programName(os.Args); is {
		os.Exit(runProgram(name))
	}
	flag.StringVar(&contract.environment, "environment", "",
		"`where` the contract suite runs: windows (a Windows Server), wine (a test host of the lab)")
	flag.StringVar(&contract.results, "results", "", "`file` for the results of the contract suite, JSON")
	flag.StringVar(&contract.reboot, "reboot", "",
		"`half` of the reboot test to run instead of the suite: arm (RESTARTS THE MACHINE), then check")
	flag.StringVar(&contract.platform, "platform", "", "`cloud` that the machine is in: AWS, GCP")
	flag.Parse()
	os.Exit(m.Run())
}

func TestHostContract(t *testing.T) {
	subject := contractSubject(t)
	switch contract.reboot {
	case "":
		writeResults(t, hosttest.Run(t, subject))
	case "arm":
		if err := hosttest.ArmReboot(t.Context(), subject.Open(t)); err != nil {
			t.Fatal(err)
		}
	case "check":
		writeResults(t, hosttest.CheckReboot(t, subject))
	default:
		t.Fatalf("-reboot=%s is neither arm nor check", contract.reboot)
	}
}

// contractSubject returns this machine if the flags allow the suite to change it.
func contractSubject(t *testing.T) hosttest.Subject {
	t.Helper()
	subject := hosttest.Subject{Environment: hosttest.Environment(contract.environment), Open: openContract}
	switch subject.Environment {
	case hosttest.Windows:
	case hosttest.Wine:
		subject.Marks = wineMarks()
	case "":
		t.Skip("NOT RUN: the host contract suite changes services, files and settings of this machine; " +
			"give -environment=windows to run it on a Windows Server that may be changed")
	default:
		t.Fatalf("-environment=%s is neither windows nor wine", contract.environment)
	}
	return subject
}

// openContract returns this machine in the form required by the contract suite.
func openContract(t *testing.T) hosttest.Machine {
	t.Helper()
	h, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	machine := hosttest.Machine{
		Host: h, Programs: contractPrograms(t),
		ServeHTTP:    serveHTTP(t),
		ServeRuntime: serveRuntime(t),
		CreateNetwork: func(ctx context.Context, network host.HNSNetwork) error {
			return createNetwork(ctx, h, network)
		},
		OpenLog: func(path string) (io.WriteCloser, error) {
			return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		},
		SetUserOwner: setUsersOwner,
		OpenToAll:    openToAll,
		AddOutboundRule: func(_ context.Context, name string) (func() (bool, error), error) {
			return addOutboundRule(t, name)
		},
		Platform: contract.platform,
		ClearLog: clearLog(),
	}
	if contract.environment == string(hosttest.Wine) {
		addSimulatedParts(t, &machine)
	}
	return machine
}

// clearLog returns the function that clears an event log, or nil on a real Windows, where the suite must not clear a
// log.
func clearLog() func(string) error {
	if hosttest.Environment(contract.environment) != hosttest.Wine {
		return nil
	}
	return func(log string) error {
		name, err := windows.UTF16PtrFromString(log)
		if err != nil {
			return err
		}
		handle, _, err := openEventLog.Call(0, uintptr(unsafe.Pointer(name)))
		if handle == 0 {
			return err
		}
		defer func() { _, _, _ = closeEventLog.Call(handle) }()
		if ok, _, err := advapi32.NewProc("ClearEventLogW").Call(handle, 0); ok == 0 {
			return err
		}
		return nil
	}
}

// writeResults merges the results of this run into the file, which may contain results of other behaviors from
// earlier runs.
func writeResults(t *testing.T, report hosttest.Report) {
	t.Helper()
	if contract.results == "" {
		return
	}
	folder, name := filepath.Split(contract.results)
	if folder == "" {
		folder = "."
	}
	earlier, err := hosttest.ReadReport(os.DirFS(folder), name)
	switch {
	case err == nil:
		report = earlier.Merge(report)
	case !errors.Is(err, fs.ErrNotExist):
		t.Fatal(err)
	}
	if err := report.Write(contract.results); err != nil {
		t.Fatal(err)
	}
	t.Logf("results: %s", strings.TrimSpace(contract.results))
}
