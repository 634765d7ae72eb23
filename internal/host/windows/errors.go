package windows

import "github.com/windows-machine-config/wmco/internal/host"

// Win32 error codes of the service control manager and the registry that callers distinguish.
const (
	codeBusy                    = 170  // ERROR_BUSY
	codeServiceDoesNotExist     = 1060 // ERROR_SERVICE_DOES_NOT_EXIST
	codeServiceSpecific         = 1066 // ERROR_SERVICE_SPECIFIC_ERROR: the service has its own exit code
	codeServiceDependencyFail   = 1068 // ERROR_SERVICE_DEPENDENCY_FAIL
	codeServiceMarkedForDelete  = 1072 // ERROR_SERVICE_MARKED_FOR_DELETE
	codeServiceExists           = 1073 // ERROR_SERVICE_EXISTS
	codeServiceDependencyGone   = 1075 // ERROR_SERVICE_DEPENDENCY_DELETED
	codeServiceNeverStarted     = 1077 // ERROR_SERVICE_NEVER_STARTED
	codeServiceDuplicateDisplay = 1078 // ERROR_DUPLICATE_SERVICE_NAME
)

// errorMeaning returns the host error for a Win32 error code, or nil if callers do not distinguish the code.
func errorMeaning(code uint32) error {
	switch code {
	case codeServiceDoesNotExist:
		return host.ErrNotExist
	case codeServiceExists, codeServiceDuplicateDisplay:
		return host.ErrExist
	case codeServiceMarkedForDelete, codeBusy:
		return host.ErrInUse
	case codeServiceDependencyFail, codeServiceDependencyGone:
		return host.ErrDependency
	}
	return fileErrorMeaning(code)
}

// classifiedError is an error with the message of Windows that also matches a host error in errors.Is.
type classifiedError struct {
	error
	hostError error
}

// Unwrap returns both errors for errors.Is.
func (e classifiedError) Unwrap() []error { return []error{e.error, e.hostError} }
