package windows

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Values of the service control manager that the code below distinguishes.
const (
	startAutomatic = 2 // SERVICE_AUTO_START
	startManual    = 3 // SERVICE_DEMAND_START
	startDisabled  = 4 // SERVICE_DISABLED

	stateStopped         = 1 // SERVICE_STOPPED
	stateStartPending    = 2 // SERVICE_START_PENDING
	stateStopPending     = 3 // SERVICE_STOP_PENDING
	stateRunning         = 4 // SERVICE_RUNNING
	stateContinuePending = 5 // SERVICE_CONTINUE_PENDING
	statePausePending    = 6 // SERVICE_PAUSE_PENDING
	statePaused          = 7 // SERVICE_PAUSED
)

// Errors of the service control manager that the agent detects before the call, with the same messages.
var (
	errServiceName     = errors.New("the specified service name is invalid")
	errServiceStart    = errors.New("unknown start type")
	errCommandLine     = errors.New("the command line is empty")
	errSelfDependency  = errors.New("circular service dependency was specified")
	errEnvironmentName = errors.New("an environment entry has no name")
)

// checkConfig rejects an invalid configuration. The service control manager would also reject parts of it, but not
// the environment, which is stored only in the registry.
func checkConfig(config host.ServiceConfig) error {
	if err := checkServiceName(config.Name); err != nil {
		return err
	}
	if len(host.SplitCommandLine(config.CommandLine)) == 0 {
		return errCommandLine
	}
	if _, err := encodeStartType(config.StartType); err != nil {
		return err
	}
	for _, dependency := range config.Dependencies {
		if strings.EqualFold(dependency, config.Name) {
			return errSelfDependency
		}
	}
	for _, entry := range config.Environment {
		if strings.IndexByte(entry, '=') < 1 {
			return errEnvironmentName
		}
	}
	return nil
}

// checkServiceName rejects names that would lead to another registry key.
func checkServiceName(name string) error {
	if name == "" || len(name) > 256 || strings.ContainsAny(name, "/\\\x00") {
		return errServiceName
	}
	return nil
}

func encodeStartType(start host.StartType) (uint32, error) {
	switch start {
	case host.StartAutomatic:
		return startAutomatic, nil
	case host.StartManual:
		return startManual, nil
	case host.StartDisabled:
		return startDisabled, nil
	}
	return 0, fmt.Errorf("%w: %q", errServiceStart, start)
}

// decodeStartType returns the start type for a code. Boot and system start types of drivers count as automatic.
func decodeStartType(start uint32) host.StartType {
	switch start {
	case startManual:
		return host.StartManual
	case startDisabled:
		return host.StartDisabled
	}
	return host.StartAutomatic
}

// decodeState returns the state for a code. A paused service counts as running because it has a process.
func decodeState(state uint32) host.ServiceState {
	switch state {
	case stateStartPending:
		return host.ServiceStartPending
	case stateStopPending:
		return host.ServiceStopPending
	case stateRunning, stateContinuePending, statePausePending, statePaused:
		return host.ServiceRunning
	}
	return host.ServiceStopped
}

// exitCode returns the exit code of the last run of a service, or 0 if the service has never run.
func exitCode(win32, specific uint32) int {
	switch win32 {
	case codeServiceSpecific:
		return int(specific)
	case codeServiceNeverStarted:
		return 0
	}
	return int(win32)
}

// displayNameOf returns the display name for a configuration. Without a display name, Windows shows the name.
func displayNameOf(config host.ServiceConfig) string {
	return cmp.Or(config.DisplayName, config.Name)
}

// explicitDisplayName is the inverse of displayNameOf: a display name equal to the name counts as empty.
func explicitDisplayName(name, shown string) string {
	if shown == name {
		return ""
	}
	return shown
}
