package windows

import (
	"github.com/windows-machine-config/wmco/internal/host"
)

// Win32 error codes of file operations that callers distinguish.
const (
	codeFileNotFound      = 2    // ERROR_FILE_NOT_FOUND
	codePathNotFound      = 3    // ERROR_PATH_NOT_FOUND
	codeAccessDenied      = 5    // ERROR_ACCESS_DENIED
	codeInvalidDrive      = 15   // ERROR_INVALID_DRIVE
	codeSharingViolation  = 32   // ERROR_SHARING_VIOLATION
	codeLockViolation     = 33   // ERROR_LOCK_VIOLATION
	codeHandleDiskFull    = 39   // ERROR_HANDLE_DISK_FULL
	codeFileExists        = 80   // ERROR_FILE_EXISTS
	codeDiskFull          = 112  // ERROR_DISK_FULL
	codeAlreadyExists     = 183  // ERROR_ALREADY_EXISTS
	codeDirectory         = 267  // ERROR_DIRECTORY: the directory name is invalid
	codeDeletePending     = 303  // ERROR_DELETE_PENDING
	codeUserMappedFile    = 1224 // ERROR_USER_MAPPED_FILE
	codeDiskQuotaExceeded = 1295 // ERROR_DISK_QUOTA_EXCEEDED
)

// fileErrorMeaning returns the host error for a Win32 error code of a file operation, or nil if callers do not
// distinguish the code.
func fileErrorMeaning(code uint32) error {
	switch code {
	case codeFileNotFound, codePathNotFound, codeInvalidDrive:
		return host.ErrNotExist
	case codeFileExists, codeAlreadyExists:
		return host.ErrExist
	case codeSharingViolation, codeLockViolation, codeDeletePending, codeUserMappedFile:
		return host.ErrInUse
	case codeDiskFull, codeHandleDiskFull, codeDiskQuotaExceeded:
		return host.ErrDiskFull
	}
	return nil
}

// isTransient reports whether a file operation may succeed a moment later: virus scanners and indexers open new files
// for some milliseconds, and Windows then refuses to replace or remove the files.
func isTransient(code uint32) bool {
	switch code {
	case codeAccessDenied, codeSharingViolation, codeDeletePending, codeUserMappedFile:
		return true
	}
	return false
}
