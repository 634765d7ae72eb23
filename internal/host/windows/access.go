//go:build windows

package windows

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// ConvertStringSecurityDescriptorToSecurityDescriptorW creates the descriptor of a new file or directory for the
// SECURITY_ATTRIBUTES of CreateFileW and CreateDirectoryW. This restricts the access from the start. GetSecurityInfo
// and SetSecurityInfo work on an open handle, which no link can redirect. SetSecurityInfo also propagates changes to
// the descendants of a directory.

// inheritedSDDL has a DACL without explicit entries that admits inherited entries.
const inheritedSDDL = "D:AI"

const accessParts = windows.OWNER_SECURITY_INFORMATION | windows.DACL_SECURITY_INFORMATION

// securityOf returns the security attributes of a new file or directory, or nil for inherited access.
func securityOf(access host.Access, folder bool) (*windows.SecurityAttributes, error) {
	if access == host.AccessInherited || access == "" {
		return nil, nil //nolint:nilnil // no attributes is what Windows calls inherited
	}
	sddl := sddlOf(access, folder)
	if sddl == "" {
		return nil, fmt.Errorf("unknown access %q", access)
	}
	descriptor, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		return nil, fmt.Errorf("create a security descriptor from %q: %w", sddl, err)
	}
	attributes := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	attributes.Length = uint32(unsafe.Sizeof(*attributes))
	return attributes, nil
}

// readAccess reads the access of an open file or directory and reports whether the entry is foreign. A descriptor
// without a DACL is foreign, and so is a descriptor that Windows cannot convert to text, which x/sys returns as "".
// Neither case is an error, because otherwise the owner of the file could block all work on the host.
func readAccess(handle windows.Handle) (access host.Access, others bool, err error) {
	descriptor, err := windows.GetSecurityInfo(handle, windows.SE_FILE_OBJECT, accessParts)
	if err != nil {
		return "", false, fmt.Errorf("read the security descriptor: %w", err)
	}
	dacl, _, err := descriptor.DACL()
	if err != nil || dacl == nil {
		return host.AccessInherited, true, nil //nolint:nilerr // everyone may do everything
	}
	sddl := descriptor.String()
	return accessOf(sddl), isForeignControlled(sddl), nil
}

// setDirectoryAccess sets the access of an existing directory. If the directory already has the access, it is not
// changed, because an administrator may have added entries to inherited permissions.
func setDirectoryAccess(path drivePath, access host.Access) error {
	// rights includes the list right, because SetSecurityInfo lists the directory to propagate the change.
	const rights = windows.READ_CONTROL | windows.WRITE_DAC | windows.WRITE_OWNER | windows.FILE_READ_ATTRIBUTES | windows.FILE_LIST_DIRECTORY | windows.SYNCHRONIZE
	handle, err := openEntry(path, windows.READ_CONTROL, shareAll)
	if err != nil {
		return err
	}
	now, _, err := readAccess(handle)
	_ = windows.CloseHandle(handle) // read only
	if err != nil || now == access || access == "" && now == host.AccessInherited {
		return err
	}
	sddl, parts := inheritedSDDL,
		windows.SECURITY_INFORMATION(windows.DACL_SECURITY_INFORMATION|windows.UNPROTECTED_DACL_SECURITY_INFORMATION)
	if access.IsRestricted() {
		sddl, parts = sddlOf(access, true), accessParts|windows.PROTECTED_DACL_SECURITY_INFORMATION
	}
	if handle, err = openEntry(path, rights, shareAll); err != nil {
		return err
	}
	defer windows.CloseHandle(handle) //nolint:errcheck // the change is made
	return setSecurity(handle, windows.SE_FILE_OBJECT, sddl, parts)
}

func setSecurity(handle windows.Handle, kind windows.SE_OBJECT_TYPE, sddl string,
	parts windows.SECURITY_INFORMATION) error {
	descriptor, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		return fmt.Errorf("create a security descriptor from %q: %w", sddl, err)
	}
	dacl, _, err := descriptor.DACL()
	if err != nil {
		return fmt.Errorf("read the DACL of %q: %w", sddl, err)
	}
	if dacl == nil {
		// A null DACL grants everyone all rights.
		return fmt.Errorf("%q has no DACL", sddl)
	}
	var owner *windows.SID
	if parts&windows.OWNER_SECURITY_INFORMATION != 0 {
		if owner, _, err = descriptor.Owner(); err != nil {
			return fmt.Errorf("read the owner of %q: %w", sddl, err)
		}
	}
	return windows.SetSecurityInfo(handle, kind, parts, owner, nil, dacl, nil)
}
