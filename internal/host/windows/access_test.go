//go:build windows

package windows

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

func statAccess(t *testing.T, path string) host.Access {
	t.Helper()
	info, err := files{}.Stat(t.Context(), path)
	requireNoError(t, err)
	return info.Access
}

// readDescriptor returns the security descriptor of a file in Windows.
func readDescriptor(t *testing.T, path string) string {
	t.Helper()
	p, err := parsePath(path)
	requireNoError(t, err)
	handle, err := openEntry(p, windows.READ_CONTROL, shareAll)
	requireNoError(t, err)
	defer windows.CloseHandle(handle)
	d, err := windows.GetSecurityInfo(handle, windows.SE_FILE_OBJECT, accessParts)
	requireNoError(t, err)
	return d.String()
}

// requireAccessLists skips the test on systems that keep no access control lists.
func requireAccessLists(t *testing.T, dir string) {
	t.Helper()
	requireNoError(t, tree{}.MakeDirectory(t.Context(), dir+`\probe`, host.AccessAdministrators))
	if statAccess(t, dir+`\probe`) != host.AccessAdministrators {
		t.Skipf("NOT SHOWN HERE: access control lists (a folder for administrators only has %s)", readDescriptor(t, dir+`\probe`))
	}
	requireNoError(t, os.Remove(dir+`\probe`))
}

func TestAccess(t *testing.T) {
	t.Run("what an administrator makes is not foreign", func(t *testing.T) {
		dir := newTestDirectory(t)
		requireNoError(t, tree{}.MakeDirectory(t.Context(), dir+`\new`, host.AccessInherited))
		writeFile(t, dir+`\new\file`, "x", host.WriteOptions{})
		for _, path := range []string{dir + `\new`, dir + `\new\file`} {
			info, err := files{}.Stat(t.Context(), path)
			requireNoError(t, err)
			if info.Foreign {
				t.Errorf("%s is foreign: %s", path, readDescriptor(t, path))
			}
		}
	})
	t.Run("a folder for administrators hands its permissions down and takes none", func(t *testing.T) {
		dir := newTestDirectory(t)
		requireAccessLists(t, dir)
		secret := dir + `\secret`
		requireNoError(t, tree{}.MakeDirectory(t.Context(), secret, host.AccessAdministrators))
		writeFile(t, secret+`\file`, "x", host.WriteOptions{})
		if statAccess(t, secret) != host.AccessAdministrators || statAccess(t, secret+`\file`) != host.AccessInherited {
			t.Errorf("%s %s", readDescriptor(t, secret), readDescriptor(t, secret+`\file`))
		}
		requireNoError(t, tree{}.MakeDirectory(t.Context(), secret, host.AccessInherited))
		if statAccess(t, secret) != host.AccessInherited {
			t.Error(readDescriptor(t, secret))
		}
	})
	t.Run("a folder that others could use is closed with all below", func(t *testing.T) {
		dir := newTestDirectory(t)
		requireAccessLists(t, dir)
		open := dir + `\open`
		requireNoError(t, tree{}.MakeDirectory(t.Context(), open, host.AccessInherited))
		writeFile(t, open+`\file`, "x", host.WriteOptions{})
		requireNoError(t, tree{}.MakeDirectory(t.Context(), open, host.AccessAdministrators))
		if statAccess(t, open) != host.AccessAdministrators {
			t.Error(readDescriptor(t, open))
		}
	})
	t.Run("a file for administrators is never another's", func(t *testing.T) {
		dir := newTestDirectory(t)
		requireAccessLists(t, dir)
		writeFile(t, dir+`\key`, "x", host.WriteOptions{Access: host.AccessAdministrators})
		if statAccess(t, dir+`\key`) != host.AccessAdministrators {
			t.Error(readDescriptor(t, dir+`\key`))
		}
		writeFile(t, dir+`\key`, "y", host.WriteOptions{})
		if statAccess(t, dir+`\key`) != host.AccessInherited {
			t.Error(readDescriptor(t, dir+`\key`))
		}
	})
	t.Run("an invalid access is refused", func(t *testing.T) {
		dir := newTestDirectory(t)
		if (tree{}).MakeDirectory(t.Context(), dir+`\x`, "Everyone") == nil {
			t.Error("accepted")
		}
	})
}

// setUsersOwner makes the group Users the owner of a directory. The change requires the restore privilege, which Open
// enables.
func setUsersOwner(_ context.Context, path string) error {
	p, err := parsePath(path)
	if err != nil {
		return err
	}
	handle, err := openEntry(p, windows.READ_CONTROL|windows.WRITE_OWNER|windows.WRITE_DAC, shareAll)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	return setSecurity(handle, windows.SE_FILE_OBJECT, "O:BU"+inheritedSDDL, accessParts|windows.UNPROTECTED_DACL_SECURITY_INFORMATION)
}

// openToAll protects a directory from inheritance and removes the DACL, which grants everyone all rights.
func openToAll(_ context.Context, path string) error {
	p, err := parsePath(path)
	if err != nil {
		return err
	}
	handle, err := openEntry(p, windows.READ_CONTROL|windows.WRITE_DAC, shareAll)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	return windows.SetSecurityInfo(handle, windows.SE_FILE_OBJECT,
		windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, nil, nil)
}

// The files in the image layers of a container belong to TrustedInstaller, and administrators may only read them.
func TestRemove_FilesReadOnlyForAdministrators(t *testing.T) {
	dir := newTestDirectory(t)
	requireAccessLists(t, dir)
	for _, privilege := range []string{backupPrivilege, restorePrivilege} {
		requireNoError(t, enablePrivilege(privilege)) // like Open
	}
	layer := dir + `\layer`
	requireNoError(t, os.Mkdir(layer, 0o700))
	writeFile(t, layer+`\file`, "x", host.WriteOptions{})
	for _, name := range []string{`\file`, ""} {
		path, err := parsePath(layer + name)
		requireNoError(t, err)
		handle, err := openEntry(path, windows.READ_CONTROL|windows.WRITE_DAC, shareAll)
		requireNoError(t, err)
		err = setSecurity(handle, windows.SE_FILE_OBJECT, "D:P(A;;FRFX;;;SY)(A;;FRFX;;;BA)",
			windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION)
		_ = windows.CloseHandle(handle)
		requireNoError(t, err)
	}
	requireNoError(t, files{}.Remove(t.Context(), layer))
}
