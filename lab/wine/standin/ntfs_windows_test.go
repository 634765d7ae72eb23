package standin

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/windows"
)

func requireNoError(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// listEntries lists a directory: names, with an @ behind links.
func listEntries(t *testing.T, folder string) []string {
	t.Helper()
	list, err := os.ReadDir(folder)
	requireNoError(t, err)
	var names []string
	for _, entry := range list {
		name := entry.Name()
		if entry.Type()&fs.ModeSymlink != 0 {
			name += "@"
		}
		names = append(names, name)
	}
	return names
}

func TestSymbolicLinks(t *testing.T) {
	folder := t.TempDir()
	file, link := folder+`\file`, folder+`\link`
	requireNoError(t, os.WriteFile(file, []byte("one"), 0o600), os.WriteFile(folder+`\two`, []byte("two"), 0o600),
		os.Symlink(file, link))
	t.Run("a link is a link, and reads as what it leads to", func(t *testing.T) {
		info, err := os.Lstat(link)
		requireNoError(t, err)
		target, err := os.Readlink(link)
		requireNoError(t, err)
		content, err := os.ReadFile(link)
		requireNoError(t, err)
		if info.Mode()&fs.ModeSymlink == 0 || target != file || string(content) != "one" {
			t.Errorf("mode %v, target %s, content %q", info.Mode(), target, content)
		}
		if got := listEntries(t, folder); !slices.Equal(got, []string{"file", "link@", "two"}) {
			t.Errorf("the folder has %v", got)
		}
	})
	t.Run("a link is replaced in one step, and its target stays", func(t *testing.T) {
		requireNoError(t, os.Symlink(folder+`\two`, folder+`\draft`), os.Rename(folder+`\draft`, link))
		content, err := os.ReadFile(link)
		requireNoError(t, err)
		if string(content) != "two" || !slices.Equal(listEntries(t, folder), []string{"file", "link@", "two"}) {
			t.Errorf("content %q, folder %v", content, listEntries(t, folder))
		}
	})
	t.Run("a link to nothing is one", func(t *testing.T) {
		requireNoError(t, os.Symlink(`nothing\here`, folder+`\dangling`))
		if target, err := os.Readlink(folder + `\dangling`); err != nil || target != `nothing\here` {
			t.Errorf("target %q, error %v", target, err)
		}
		if _, err := os.Stat(folder + `\dangling`); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got error %v", err)
		}
		requireNoError(t, os.Remove(folder+`\dangling`))
	})
	t.Run("a removed link leaves its target, also when its folder is removed", func(t *testing.T) {
		requireNoError(t, os.Remove(link), os.Mkdir(folder+`\sub`, 0o700), os.Symlink(file, folder+`\sub\link`),
			os.RemoveAll(folder+`\sub`))
		if got := listEntries(t, folder); !slices.Equal(got, []string{"file", "two"}) {
			t.Errorf("the folder has %v", got)
		}
	})
	t.Run("a program runs through a link", func(t *testing.T) {
		self, err := os.Executable()
		requireNoError(t, err)
		requireNoError(t, os.Symlink(self, folder+`\program.exe`))
		if output, err := exec.CommandContext(t.Context(), folder+`\program.exe`,
			"-test.run=^$").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
		requireNoError(t, os.Remove(folder+`\program.exe`))
	})
}

// accessList returns a file's owner and access list.
func accessList(t *testing.T, path string) string {
	t.Helper()
	name, err := windows.UTF16PtrFromString(path)
	requireNoError(t, err)
	handle, err := windows.CreateFile(name, windows.READ_CONTROL, windows.FILE_SHARE_READ, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	requireNoError(t, err)
	defer windows.CloseHandle(handle)
	descriptor, err := windows.GetSecurityInfo(handle, windows.SE_FILE_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	requireNoError(t, err)
	return descriptor.String()
}

func TestAccessLists(t *testing.T) {
	const administrators = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
	folder := t.TempDir() + `\secret`
	descriptor, err := windows.SecurityDescriptorFromString(administrators)
	requireNoError(t, err)
	name, err := windows.UTF16PtrFromString(folder)
	requireNoError(t, err)
	requireNoError(t, windows.CreateDirectory(name, &windows.SecurityAttributes{Length: 24, SecurityDescriptor: descriptor}))
	t.Run("a folder keeps the list that it was made with", func(t *testing.T) {
		if got := accessList(t, folder); got != administrators {
			t.Errorf("got %s", got)
		}
	})
	t.Run("another list takes its place", func(t *testing.T) {
		handle, err := windows.CreateFile(name, windows.READ_CONTROL|windows.WRITE_DAC, windows.FILE_SHARE_READ, nil,
			windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
		requireNoError(t, err)
		defer windows.CloseHandle(handle)
		open, err := windows.SecurityDescriptorFromString("D:(A;;FA;;;WD)")
		requireNoError(t, err)
		dacl, _, err := open.DACL()
		requireNoError(t, err)
		requireNoError(t, windows.SetSecurityInfo(handle, windows.SE_FILE_OBJECT,
			windows.DACL_SECURITY_INFORMATION|windows.UNPROTECTED_DACL_SECURITY_INFORMATION, nil, nil, dacl, nil))
		if got := accessList(t, folder); got != "O:BAD:(A;;FA;;;WD)" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("a file without one has what Wine makes of its mode", func(t *testing.T) {
		requireNoError(t, os.WriteFile(folder+`\file`, nil, 0o600))
		if got := accessList(t, folder+`\file`); got == "" || got == administrators {
			t.Errorf("got %q", got)
		}
	})
}
