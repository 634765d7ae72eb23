//go:build windows

package windows

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// newTestDirectory returns an empty directory on the drive. Files held by other processes are removed when their
// process ends.
func newTestDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(`C:\`, "wmco-files-test-") //nolint:usetesting // a short path, for tests of long ones
	requireNoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func requireError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func writeFile(t *testing.T, path, content string, options host.WriteOptions) {
	t.Helper()
	requireNoError(t, files{}.Write(t.Context(), path, strings.NewReader(content), options))
}

func get(t *testing.T, path string) string {
	t.Helper()
	reader, err := files{}.Open(t.Context(), path)
	requireNoError(t, err)
	data, err := io.ReadAll(reader)
	requireNoError(t, errors.Join(err, reader.Close()))
	return string(data)
}

func listNames(t *testing.T, dir string) string {
	t.Helper()
	infos, err := files{}.ReadDir(t.Context(), dir)
	requireNoError(t, err)
	var list []string
	for _, info := range infos {
		list = append(list, info.Name)
	}
	return strings.Join(list, " ")
}

func readOnly(t *testing.T, path string) {
	t.Helper()
	requireNoError(t, windows.SetFileAttributes(windows.StringToUTF16Ptr(path), windows.FILE_ATTRIBUTE_READONLY))
}

// requireSymlinks skips the test on systems without symbolic links.
func requireSymlinks(t *testing.T, dir string) {
	t.Helper()
	probe := filepath.Join(dir, "probe")
	err := os.Symlink(dir, probe)
	if err == nil {
		_, err = os.Lstat(probe)
	}
	if err != nil {
		t.Skipf("NOT SHOWN HERE: symbolic links (%v)", err)
	}
	requireNoError(t, os.Remove(probe))
}

func TestFiles(t *testing.T) {
	t.Run("a path of more than 260 characters works throughout", func(t *testing.T) {
		dir := newTestDirectory(t)
		long := dir
		for range 5 {
			long += `\` + strings.Repeat("d", 80)
			requireNoError(t, tree{}.MakeDirectory(t.Context(), long, host.AccessInherited))
		}
		writeFile(t, long+`\file`, "content", host.WriteOptions{})
		requireNoError(t, tree{}.Rename(t.Context(), long+`\file`, long+`\moved`))
		info, err := files{}.Stat(t.Context(), long+`\MOVED`)
		requireNoError(t, err)
		if info.Path != long+`\moved` || info.Size != 7 || get(t, long+`\moved`) != "content" || listNames(t, long) != "moved" {
			t.Errorf("%+v", info)
		}
		requireNoError(t, files{}.Remove(t.Context(), dir))
		_, err = files{}.Stat(t.Context(), dir)
		requireError(t, err, host.ErrNotExist)
	})
	t.Run("what lies below a file is not there", func(t *testing.T) {
		dir := newTestDirectory(t)
		writeFile(t, dir+`\file`, "x", host.WriteOptions{})
		_, err := files{}.Stat(t.Context(), dir+`\file\below`)
		requireError(t, err, host.ErrNotExist)
	})
	t.Run("read-only files are replaced and removed", func(t *testing.T) {
		dir := newTestDirectory(t)
		writeFile(t, dir+`\file`, "old", host.WriteOptions{})
		readOnly(t, dir+`\file`)
		writeFile(t, dir+`\file`, "new", host.WriteOptions{})
		requireNoError(t, tree{}.MakeDirectory(t.Context(), dir+`\sub`, ""))
		writeFile(t, dir+`\sub\file`, "x", host.WriteOptions{})
		readOnly(t, dir+`\sub\file`)
		readOnly(t, dir+`\sub`)
		requireNoError(t, files{}.Remove(t.Context(), dir+`\sub`))
		if got := get(t, dir+`\file`); got != "new" || listNames(t, dir) != "file" {
			t.Errorf("%q, %s", got, listNames(t, dir))
		}
	})
	t.Run("an open file is in use, and the rest of its folder goes", func(t *testing.T) {
		dir := newTestDirectory(t)
		writeFile(t, dir+`\held`, "old", host.WriteOptions{})
		writeFile(t, dir+`\free`, "x", host.WriteOptions{})
		handle, err := windows.CreateFile(windows.StringToUTF16Ptr(dir+`\held`), windows.GENERIC_READ, windows.FILE_SHARE_READ, nil, windows.OPEN_EXISTING, 0, 0)
		requireNoError(t, err)
		defer windows.CloseHandle(handle)
		requireError(t, files{}.Write(t.Context(), dir+`\held`, strings.NewReader("new"), host.WriteOptions{}), host.ErrInUse)
		writeFile(t, dir+`\new`, "x", host.WriteOptions{})
		requireError(t, tree{}.Rename(t.Context(), dir+`\new`, dir+`\held`), host.ErrInUse)
		requireError(t, files{}.Remove(t.Context(), dir), host.ErrInUse)
		if listNames(t, dir) != "held" {
			t.Error(listNames(t, dir))
		}
	})
	t.Run("a running program is in use, but may be renamed", func(t *testing.T) {
		dir := newTestDirectory(t)
		self, err := os.Open(os.Args[0])
		requireNoError(t, err)
		defer self.Close()
		program := dir + `\program.exe`
		requireNoError(t, files{}.Write(t.Context(), program, self, host.WriteOptions{}))
		command := exec.CommandContext(t.Context(), program, "-test.run=^TestIdle$")
		command.Env = append(os.Environ(), "WMCO_IDLE=1")
		input, err := command.StdinPipe()
		requireNoError(t, err)
		output, err := command.StdoutPipe()
		requireNoError(t, err)
		requireNoError(t, command.Start())
		defer func() { _ = input.Close(); _ = command.Wait() }()
		_, err = output.Read(make([]byte, 1))
		requireNoError(t, err)
		requireError(t, files{}.Write(t.Context(), program, strings.NewReader("new"), host.WriteOptions{}), host.ErrInUse)
		requireError(t, files{}.Remove(t.Context(), program), host.ErrInUse)
		requireError(t, files{}.Remove(t.Context(), dir), host.ErrInUse)
		writeFile(t, dir+`\new`, "new", host.WriteOptions{})
		requireError(t, tree{}.Rename(t.Context(), dir+`\new`, program), host.ErrInUse)
		requireNoError(t, tree{}.Rename(t.Context(), program, program+".old"))
		writeFile(t, program, "new", host.WriteOptions{})
		requireError(t, files{}.Remove(t.Context(), program+".old"), host.ErrInUse)
		requireNoError(t, errors.Join(input.Close(), command.Wait()))
		requireNoError(t, files{}.Remove(t.Context(), dir))
	})
	t.Run("a write that fails leaves neither part nor draft", func(t *testing.T) {
		dir := newTestDirectory(t)
		writeFile(t, dir+`\file`, "old", host.WriteOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		endless := readerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })
		requireError(t, files{}.Write(ctx, dir+`\file`, endless, host.WriteOptions{}), context.Canceled)
		if get(t, dir+`\file`) != "old" || listNames(t, dir) != "file" {
			t.Error(listNames(t, dir))
		}
	})
	t.Run("the draft of a killed writer is taken over", func(t *testing.T) {
		dir := newTestDirectory(t)
		writeFile(t, dir+`\file`+draftSuffix, "half", host.WriteOptions{})
		writeFile(t, dir+`\file`, "whole", host.WriteOptions{})
		if get(t, dir+`\file`) != "whole" || listNames(t, dir) != "file" {
			t.Error(listNames(t, dir))
		}
	})
	t.Run("the first of many exclusive writers wins, the others learn that the file is there", func(t *testing.T) {
		dir := newTestDirectory(t)
		won := 0
		for range 10 {
			err := files{}.Write(t.Context(), dir+`\lock`, strings.NewReader("x"), host.WriteOptions{Exclusive: true})
			if err == nil {
				won++
			} else {
				requireError(t, err, host.ErrExist)
			}
		}
		if won != 1 || listNames(t, dir) != "lock" {
			t.Errorf("%d won, %s", won, listNames(t, dir))
		}
	})
	t.Run("a full disk is distinguished, and the part that was written is taken back", func(t *testing.T) {
		small := os.Getenv("WMCO_TEST_SMALL_DRIVE")
		if small == "" {
			t.Skip(`NOT SHOWN HERE: a full disk (WMCO_TEST_SMALL_DRIVE names none, such as D:\, of 1 to 16 MiB)`)
		}
		writeFile(t, small+"full", "old", host.WriteOptions{})
		before := listNames(t, small)
		requireError(t, files{}.Write(t.Context(), small+"full", bytes.NewReader(make([]byte, 32<<20)), host.WriteOptions{}), host.ErrDiskFull)
		if get(t, small+"full") != "old" || listNames(t, small) != before {
			t.Error(listNames(t, small))
		}
		requireNoError(t, files{}.Remove(t.Context(), small+"full"))
	})
	t.Run("the drive itself is described, and neither removed nor written", func(t *testing.T) {
		info, err := files{}.Stat(t.Context(), `c:\`)
		requireNoError(t, err)
		if !info.Directory || info.Path != `C:\` {
			t.Errorf("%+v", info)
		}
		if (files{}).Remove(t.Context(), `C:\`) == nil || (files{}).Write(t.Context(), `C:\`, bytes.NewReader(nil), host.WriteOptions{}) == nil {
			t.Error("accepted")
		}
		requireNoError(t, tree{}.MakeDirectory(t.Context(), `C:\`, ""))
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestIdle runs in a child process until its standard input ends, and otherwise skips.
func TestIdle(t *testing.T) {
	if os.Getenv("WMCO_IDLE") == "" {
		t.Skip("only as a child process of another test")
	}
	_, _ = os.Stdout.WriteString("x")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
