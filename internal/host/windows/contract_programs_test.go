//go:build windows

package windows

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"github.com/windows-machine-config/wmco/internal/host/hosttest"
)

// programFlag makes the test program act as a service of the suite. The test program does not query the service
// control manager for its role, because only the suite passes this flag.
const programFlag = "-contract-program="

// maxChildLifetime is the maximum lifetime of a process that no test ends.
const maxChildLifetime = 10 * time.Minute

func programName(words []string) (name string, is bool) {
	if len(words) < 2 {
		return "", false
	}
	return strings.CutPrefix(words[1], programFlag)
}

// contractPrograms returns the command lines of the test program in its other roles.
func contractPrograms(t *testing.T) hosttest.Programs {
	t.Helper()
	self, err := executablePath()
	if err != nil {
		t.Fatal(err)
	}
	as := func(name string) []string { return []string{self, programFlag + name} }
	return hosttest.Programs{Idle: as("idle"), Failing: as("failing"), Reporting: as("reporting"), Parent: as("parent")}
}

// executablePath returns the path of this program in the notation of the process table. The directory for temporary
// files often has a short name.
func executablePath() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	short, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return "", err
	}
	long := make([]uint16, windows.MAX_LONG_PATH)
	n, err := windows.GetLongPathName(short, &long[0], uint32(len(long)))
	if err != nil {
		return "", fmt.Errorf("ask for the long name of %s: %w", path, err)
	}
	return windows.UTF16ToString(long[:min(int(n), len(long))]), nil
}

// runProgram is the main function of the services.
func runProgram(name string) (exitCode int) {
	if name == "child" {
		time.Sleep(maxChildLifetime)
		return 0
	}
	if err := svc.Run("", program(name)); err != nil {
		return 1
	}
	return 0
}

// program is the name of a service.
type program string

// failure is the exit code that the suite expects from the failing service.
const failure = 7

// Execute implements svc.Handler.
func (p program) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (specific bool,
	exitCode uint32) {
	status <- svc.Status{State: svc.StartPending}
	if err := p.runStartAction(); err != nil {
		return true, 1
	}
	status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	if p == "failing" {
		return true, failure
	}
	for request := range requests {
		switch request.Cmd {
		case svc.Interrogate:
			status <- request.CurrentStatus
		case svc.Stop, svc.Shutdown:
			status <- svc.Status{State: svc.StopPending}
			return false, 0
		}
	}
	return false, 0
}

func (p program) runStartAction() error {
	switch p {
	case "reporting":
		return writeAccount()
	case "parent":
		self, err := executablePath()
		if err != nil {
			return err
		}
		return exec.Command(self, programFlag+"child").Start()
	}
	return nil
}

// writeAccount writes the arguments and the environment of this process to the file named by the last argument.
func writeAccount() error {
	data, err := json.Marshal(hosttest.Account{Arguments: os.Args[1:], Environment: os.Environ()})
	if err != nil {
		return err
	}
	return os.WriteFile(os.Args[len(os.Args)-1], data, 0o600)
}
