//go:build windows

package windows

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

func access(t *testing.T, path string) host.Access {
	t.Helper()
	info, err := files{}.Stat(t.Context(), path)
	must(t, err)
	return info.Access
}

// descriptor returns the security descriptor of a file in Windows.
func descriptor(t *testing.T, path string) string {
	t.Helper()
	p, err := parsePath(path)
	must(t, err)
	handle, err := openEntry(p, windows.READ_CONTROL, shareAll)
	must(t, err)
	defer windows.CloseHandle(handle)
	d, err := windows.GetSecurityInfo(handle, windows.SE_FILE_OBJECT, accessParts)
	must(t, err)
	return d.String()
}

// lists skips the test on systems that keep no access control lists.
func lists(t *testing.T, dir string) {
	t.Helper()
	must(t, tree{}.MakeDirectory(t.Context(), dir+`\probe`, host.AccessAdministrators))
	if access(t, dir+`\probe`) != host.AccessAdministrators {
		t.Skipf("NOT SHOWN HERE: access control lists (a folder for administrators only has %s)", descriptor(t, dir+`\probe`))
	}
	must(t, os.Remove(dir+`\probe`))
}

func TestAccess(t *testing.T) {
	t.Run("what an administrator makes is not foreign", func(t *testing.T) {
		dir := folder(t)
		must(t, tree{}.MakeDirectory(t.Context(), dir+`\new`, host.AccessInherited))
		put(t, dir+`\new\file`, "x", host.WriteOptions{})
		for _, path := range []string{dir + `\new`, dir + `\new\file`} {
			info, err := files{}.Stat(t.Context(), path)
			must(t, err)
			if info.Foreign {
				t.Errorf("%s is foreign: %s", path, descriptor(t, path))
			}
		}
	})
	t.Run("a folder for administrators hands its permissions down and takes none", func(t *testing.T) {
		dir := folder(t)
		lists(t, dir)
		secret := dir + `\secret`
		must(t, tree{}.MakeDirectory(t.Context(), secret, host.AccessAdministrators))
		put(t, secret+`\file`, "x", host.WriteOptions{})
		if access(t, secret) != host.AccessAdministrators || access(t, secret+`\file`) != host.AccessInherited {
			t.Errorf("%s %s", descriptor(t, secret), descriptor(t, secret+`\file`))
		}
		must(t, tree{}.MakeDirectory(t.Context(), secret, host.AccessInherited))
		if access(t, secret) != host.AccessInherited {
			t.Error(descriptor(t, secret))
		}
	})
	t.Run("a folder that others could use is closed with all below", func(t *testing.T) {
		dir := folder(t)
		lists(t, dir)
		open := dir + `\open`
		must(t, tree{}.MakeDirectory(t.Context(), open, host.AccessInherited))
		put(t, open+`\file`, "x", host.WriteOptions{})
		must(t, tree{}.MakeDirectory(t.Context(), open, host.AccessAdministrators))
		if access(t, open) != host.AccessAdministrators {
			t.Error(descriptor(t, open))
		}
	})
	t.Run("a file for administrators is never another's", func(t *testing.T) {
		dir := folder(t)
		lists(t, dir)
		put(t, dir+`\key`, "x", host.WriteOptions{Access: host.AccessAdministrators})
		if access(t, dir+`\key`) != host.AccessAdministrators {
			t.Error(descriptor(t, dir+`\key`))
		}
		put(t, dir+`\key`, "y", host.WriteOptions{})
		if access(t, dir+`\key`) != host.AccessInherited {
			t.Error(descriptor(t, dir+`\key`))
		}
	})
	t.Run("an invalid access is refused", func(t *testing.T) {
		dir := folder(t)
		if (tree{}).MakeDirectory(t.Context(), dir+`\x`, "Everyone") == nil {
			t.Error("accepted")
		}
	})
}

// giveToUsers makes the group Users the owner of a directory. The change requires the restore privilege, which Open
// enables.
func giveToUsers(_ context.Context, path string) error {
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
func TestRemoveWhatAdministratorsMayOnlyRead(t *testing.T) {
	dir := folder(t)
	lists(t, dir)
	for _, privilege := range []string{backupPrivilege, restorePrivilege} {
		must(t, enablePrivilege(privilege)) // like Open
	}
	layer := dir + `\layer`
	must(t, os.Mkdir(layer, 0o700))
	put(t, layer+`\file`, "x", host.WriteOptions{})
	for _, name := range []string{`\file`, ""} {
		path, err := parsePath(layer + name)
		must(t, err)
		handle, err := openEntry(path, windows.READ_CONTROL|windows.WRITE_DAC, shareAll)
		must(t, err)
		err = setSecurity(handle, windows.SE_FILE_OBJECT, "D:P(A;;FRFX;;;SY)(A;;FRFX;;;BA)",
			windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION)
		_ = windows.CloseHandle(handle)
		must(t, err)
	}
	must(t, files{}.Remove(t.Context(), layer))
}
