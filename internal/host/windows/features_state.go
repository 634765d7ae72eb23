package windows

import (
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
)

// dismState is DismPackageFeatureState of dismapi.h.
type dismState uint32

// DISM states of a feature.
const (
	dismNotPresent         dismState = 0
	dismUninstallPending   dismState = 1
	dismStaged             dismState = 2
	dismRemoved            dismState = 3
	dismInstalled          dismState = 4
	dismInstallPending     dismState = 5
	dismSuperseded         dismState = 6
	dismPartiallyInstalled dismState = 7
)

// featureState maps a DISM state. A feature with missing or incomplete files is disabled, because enabling also
// installs the files.
func featureState(state dismState) (host.FeatureState, error) {
	switch state {
	case dismUninstallPending:
		return host.FeatureDisablePending, nil
	case dismInstalled:
		return host.FeatureEnabled, nil
	case dismInstallPending:
		return host.FeatureEnablePending, nil
	case dismNotPresent, dismStaged, dismRemoved, dismSuperseded, dismPartiallyInstalled:
		return host.FeatureDisabled, nil
	}
	return host.FeatureUnknown, fmt.Errorf("DISM returned the unknown feature state %d", state)
}

// result is an HRESULT.
type result uint32

// Results of the DISM API that callers distinguish.
const (
	resultOK                 result = 0
	resultRestartNeeded      result = 3010       // ERROR_SUCCESS_REBOOT_REQUIRED, not as an HRESULT
	resultRestartNeededWin32 result = 0x80070BC2 // the same as an HRESULT, a success despite its failure bit
	resultUnknownFeature     result = 0x800F080C // CBS_E_UNKNOWN_UPDATE: feature name is unknown
	resultNotFound           result = 0x80070490 // HRESULT of ERROR_NOT_FOUND
	resultElevationRequired  result = 0x800702E4 // HRESULT of ERROR_ELEVATION_REQUIRED
	resultNoSource           result = 0x800F081F // CBS_E_SOURCE_MISSING
	resultAccessDenied       result = 0x80070005 // E_ACCESSDENIED
	resultRestartFirst       result = 0x800F082F // CBS_E_PENDING
	resultCanceled           result = 0x800704C7 // HRESULT for a canceled call
	resultAborted            result = 0x800704D3 // HRESULT of ERROR_REQUEST_ABORTED
)

// isFailure reports whether a result is a failure.
func (r result) isFailure() bool { return r&0x80000000 != 0 && r != resultRestartNeededWin32 }

// dismError is a failed call of the DISM API.
type dismError struct {
	call    string // DismEnableFeature
	result  result
	message string // message of DISM in the language of Windows; may be empty
}

// Error implements error.
func (e *dismError) Error() string {
	text := fmt.Sprintf("%s failed with 0x%08x", e.call, uint32(e.result))
	if e.message != "" {
		text += " (" + e.message + ")"
	}
	if hint := e.describeAction(); hint != "" {
		text += "; " + hint
	}
	return text
}

const enableAtConsole = "enable the feature at the console of the host, because Windows Update may refuse sessions of the SSH server, " +
	"or use an image that contains the files"

// describeAction returns the action for the administrator, or a reference to the log.
func (e *dismError) describeAction() string {
	switch {
	case e.result == resultNoSource:
		return "the feature's files are not on the disk: " + enableAtConsole
	case e.lacksSource():
		return "the feature's files may not be on the disk: " + enableAtConsole + `. See also C:\Windows\Logs\DISM\dism.log on the host`
	case e.result == resultUnknownFeature, e.result == resultNotFound:
		return "this edition of Windows does not have the feature"
	case e.result == resultElevationRequired:
		return "the user of the process must be an administrator"
	case e.result == resultRestartFirst:
		return "another change of features requires a restart: restart the host"
	}
	return `see C:\Windows\Logs\DISM\dism.log on the host`
}

// lacksSource reports whether DISM may have failed to download the files of a feature. Windows Update, with results
// 0x8024xxxx, refuses network logons, such as sessions of the SSH server with a key.
func (e *dismError) lacksSource() bool {
	const facilityWindowsUpdate = 0x8024
	return e.call == "DismEnableFeature" &&
		(e.result == resultAccessDenied || e.result>>16 == facilityWindowsUpdate)
}

// Unwrap returns host.ErrNotExist for an unknown feature.
func (e *dismError) Unwrap() error {
	if e.result == resultUnknownFeature {
		return host.ErrNotExist
	}
	return nil
}
