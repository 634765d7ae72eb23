package fake

import (
	"io/fs"

	"github.com/windows-machine-config/wmco/internal/host"
)

// windowsError is an error with Windows' message and its meaning for callers.
type windowsError struct {
	message string
	means   error // nil: no meaning that callers distinguish
}

// Error implements error.
func (e *windowsError) Error() string { return e.message }

// Unwrap returns the meaning for errors.Is.
func (e *windowsError) Unwrap() error { return e.means }

// ErrNotExecutable is returned if a file is not a program. The message is from Windows, which does not fill in the
// name.
var ErrNotExecutable error = &windowsError{"%1 is not a valid Win32 application.", nil}

var (
	errPathNotFound error = &windowsError{"The system cannot find the path specified.", host.ErrNotExist}
	errNotFound     error = &windowsError{"The system cannot find the file specified.", host.ErrNotExist}
	errExists       error = &windowsError{"Cannot create a file when that file already exists.", host.ErrExist}
	errName         error = &windowsError{"The filename, directory name, or volume label syntax is incorrect.",
		fs.ErrInvalid}
	errNotDirectory error = &windowsError{"The directory name is invalid.", nil}
	errNotEmpty     error = &windowsError{"The directory is not empty.", nil}
	errDenied       error = &windowsError{"Access is denied.", fs.ErrPermission}
	errLinks        error = &windowsError{"The name of the file cannot be resolved by the system.", nil}
	errDiskFull     error = &windowsError{"There is not enough space on the disk.", host.ErrDiskFull}
	errParameter    error = &windowsError{"The parameter is incorrect.", nil}

	errNoService error = &windowsError{"The specified service does not exist as an installed service.",
		host.ErrNotExist}
	errMarkedDeleted error = &windowsError{"The specified service has been marked for deletion.", host.ErrInUse}
	errDisabled      error = &windowsError{"The service cannot be started because it is disabled.", nil}
	errCircular      error = &windowsError{"Circular service dependency was specified.", nil}
	errServiceName   error = &windowsError{"The specified service name is invalid.", nil}

	errHostName    error = &windowsError{"The format of the specified computer name is invalid.", nil}
	errFeatureName error = &windowsError{"Feature name is unknown.", host.ErrNotExist}
	errNoHNS       error = &windowsError{"The Host Networking Service is not installed; the feature Containers must be enabled.", nil}
	errNoHost      error = &windowsError{"No such host is known.", host.ErrNotExist}
	errNoRoute     error = &windowsError{"A socket operation was attempted to an unreachable network.", nil}
	errASN1        error = &windowsError{"ASN1 bad tag value met.", fs.ErrInvalid}
	errRefused     error = &windowsError{"No connection could be made because the target machine actively refused it.",
		nil}
	errAddressInUse error = &windowsError{"Only one usage of each socket address is normally permitted.", nil}
)
