package windows

import "github.com/windows-machine-config/wmco/internal/host"

// Win32 error codes of the service control manager and the registry that callers tell apart.
const (
	codeBusy                    = 170  // ERROR_BUSY
	codeServiceDoesNotExist     = 1060 // ERROR_SERVICE_DOES_NOT_EXIST
	codeServiceSpecific         = 1066 // ERROR_SERVICE_SPECIFIC_ERROR: the service has an exit code of its own
	codeServiceDependencyFail   = 1068 // ERROR_SERVICE_DEPENDENCY_FAIL
	codeServiceMarkedForDelete  = 1072 // ERROR_SERVICE_MARKED_FOR_DELETE
	codeServiceExists           = 1073 // ERROR_SERVICE_EXISTS
	codeServiceDependencyGone   = 1075 // ERROR_SERVICE_DEPENDENCY_DELETED
	codeServiceNeverStarted     = 1077 // ERROR_SERVICE_NEVER_STARTED
	codeServiceDuplicateDisplay = 1078 // ERROR_DUPLICATE_SERVICE_NAME
)

// errorMeaning is what a Win32 error code means to callers; nil when they do not tell it apart.
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

// meaningful is an error in Windows' words that errors.Is also finds under its meaning.
type meaningful struct {
	error
	means error
}

// Unwrap lets errors.Is find both.
func (e meaningful) Unwrap() []error { return []error{e.error, e.means} }
