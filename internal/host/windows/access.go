//go:build windows

package windows

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Win32 calls here: ConvertStringSecurityDescriptorToSecurityDescriptorW for the descriptor that a new file or folder
// gets in the SECURITY_ATTRIBUTES of CreateFileW and CreateDirectoryW, so that no moment passes in which others may use
// it; GetSecurityInfo and SetSecurityInfo on an open handle, which cannot be led elsewhere by a link and hands changes
// down to what is below a folder.

// inheritedSDDL has a DACL with no entry of its own that lets inherited ones in.
const inheritedSDDL = "D:AI"

const accessParts = windows.OWNER_SECURITY_INFORMATION | windows.DACL_SECURITY_INFORMATION

// securityOf is what a new file or folder is made with; nil when it inherits.
func securityOf(access host.Access, folder bool) (*windows.SecurityAttributes, error) {
	if access == host.AccessInherited || access == "" {
		return nil, nil //nolint:nilnil // no attributes is what Windows calls inherited
	}
	sddl := sddlOf(access, folder)
	if sddl == "" {
		return nil, fmt.Errorf("there is no access %q", access)
	}
	descriptor, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		return nil, fmt.Errorf("make a security descriptor of %q: %w", sddl, err)
	}
	attributes := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	attributes.Length = uint32(unsafe.Sizeof(*attributes))
	return attributes, nil
}

// readAccess reads who may use an open file or folder, and whether it is foreign. A descriptor without a DACL is foreign,
// and so is one that Windows cannot convert to text, which x/sys returns as "". Neither is an error: the file's owner could
// stop all work on the host otherwise.
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
	return accessOf(sddl), foreign(sddl), nil
}

// setFolderAccess changes who may use a folder that is there. One that has the access already is left alone, with
// what an administrator may have added to inherited permissions.
func setFolderAccess(path drivePath, access host.Access) error {
	// SetSecurityInfo lists the folder to hand the change down.
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
	if access.Closed() {
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
		return fmt.Errorf("make a security descriptor of %q: %w", sddl, err)
	}
	dacl, _, err := descriptor.DACL()
	if err != nil {
		return fmt.Errorf("take the DACL of %q: %w", sddl, err)
	}
	if dacl == nil {
		// What Windows calls a null DACL lets everyone in.
		return fmt.Errorf("%q has no DACL", sddl)
	}
	var owner *windows.SID
	if parts&windows.OWNER_SECURITY_INFORMATION != 0 {
		if owner, _, err = descriptor.Owner(); err != nil {
			return fmt.Errorf("take the owner of %q: %w", sddl, err)
		}
	}
	return windows.SetSecurityInfo(handle, kind, parts, owner, nil, dacl, nil)
}
