package fake

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestDrive(t *testing.T) {
	t.Run("names that Windows does not allow are refused", func(t *testing.T) {
		r := bootMachine(t, nil)
		for _, path := range []string{
			`C:\NUL`, `C:\con.txt`, `C:\com1`, `C:\ends.`, `C:\ends `, `C:\a:b`, `C:\a?`, `relative`, `C:relative`, "C:\\tab\there",
		} {
			if r.Drive().WriteFile(path, nil) == nil {
				t.Errorf("%q was written", path)
			}
		}
		r.requireError(r.Drive().WriteFile(`D:\file`, nil), host.ErrNotExist)
	})
	t.Run("a fresh machine looks like Windows, and slashes are backslashes", func(t *testing.T) {
		r := bootMachine(t, nil)
		info, err := r.Files.Stat(r.ctx, "c:/programdata/SSH")
		r.requireNoError(err)
		if info.Path != `C:\ProgramData\ssh` || info.Access != host.AccessAdministrators || !info.Directory {
			t.Errorf("%+v", info)
		}
	})
	t.Run("a full disk cuts a write and keeps the old content", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.write(`C:\file`, "old")
		restore := r.FillDisk(1 << 10)
		free := func() int64 {
			info, err := r.System.Info(r.ctx)
			r.requireNoError(err)
			return info.FreeDiskBytes
		}
		r.requireError(r.Files.Write(r.ctx, `C:\file`, strings.NewReader(strings.Repeat("x", 1<<20)), host.WriteOptions{}), host.ErrDiskFull)
		if r.read(`C:\file`) != "old" || free() != 1<<10 {
			t.Errorf("content %q, %d bytes free", r.read(`C:\file`), free())
		}
		r.write(`C:\small`, strings.Repeat("x", 1<<10))
		r.requireError(r.Drive().WriteFile(`C:\more`, []byte("x")), host.ErrDiskFull)
		r.requireNoError(r.Files.Remove(r.ctx, `C:\small`))
		restore()
		r.write(`C:\file`, strings.Repeat("x", 1<<20))
	})
	t.Run("a folder in use loses only what is not in use", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.requireNoError(r.Drive().MkdirAll(`C:\k\bin`))
		r.write(`C:\k\bin\held`, "")
		r.write(`C:\k\bin\free`, "")
		release, err := r.HoldFile(`C:\k\bin\held`)
		r.requireNoError(err)
		r.requireError(r.Files.Remove(r.ctx, `C:\k`), host.ErrInUse)
		r.requireError(r.Tree.Rename(r.ctx, `C:\k`, `C:\j`), host.ErrInUse)
		r.requireError(r.Tree.Rename(r.ctx, `C:\k\bin\held`, `C:\j`), host.ErrInUse)
		entries, err := r.Files.ReadDir(r.ctx, `C:\k\bin`)
		r.requireNoError(err)
		if len(entries) != 1 || entries[0].Name != "held" {
			t.Errorf("left: %v", entries)
		}
		release()
		r.requireNoError(r.Files.Remove(r.ctx, `C:\k`))
	})
	t.Run("links that lead in a circle are an error", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.requireNoError(r.Tree.Symlink(r.ctx, `C:\two`, `C:\one`))
		r.requireNoError(r.Tree.Symlink(r.ctx, `one`, `C:\two`))
		_, err := r.Files.Open(r.ctx, `C:\one`)
		r.requireError(err, errLinks)
	})
	t.Run("a folder cannot be moved into itself, and a rename may change the case", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.requireNoError(r.Drive().MkdirAll(`C:\k\bin`))
		if r.Tree.Rename(r.ctx, `C:\k`, `C:\k\bin\k`) == nil {
			t.Error("it moved")
		}
		r.requireNoError(r.Tree.Rename(r.ctx, `C:\k`, `C:\K`))
		onDisk, err := r.Drive().RealName(`c:\k\BIN`)
		r.requireNoError(err)
		if onDisk != `C:\K\bin` {
			t.Errorf("real name %s", onDisk)
		}
	})
}

func TestWriter(t *testing.T) {
	t.Run("concurrent writes out of order make one file, visible when it is closed", func(t *testing.T) {
		r := bootMachine(t, nil)
		w, err := r.Drive().OpenWriter(`C:\up.bin`, OpenWriterOptions{})
		r.requireNoError(err)
		var group sync.WaitGroup
		for i := range 10 {
			group.Go(func() {
				if _, err := w.WriteAt([]byte{byte('0' + 9 - i)}, int64(9-i)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := r.read(`C:\up.bin`); got != "" {
			t.Errorf("visible before it is closed: %q", got)
		}
		r.requireError(r.Files.Remove(r.ctx, `C:\up.bin`), host.ErrInUse)
		r.requireNoError(w.Close())
		if got := r.read(`C:\up.bin`); got != "0123456789" {
			t.Errorf("content %q", got)
		}
		if r.Journal().Bytes(KindWrite) != 10 || r.drive.pendingBytes != 0 {
			t.Errorf("%d bytes in the journal, %d unborn", r.Journal().Bytes(KindWrite), r.drive.pendingBytes)
		}
	})
	t.Run("a power cut leaves what was written until then", func(t *testing.T) {
		r := bootMachine(t, nil)
		w, err := r.Drive().OpenWriter(`C:\up.bin`, OpenWriterOptions{})
		r.requireNoError(err)
		_, err = w.WriteAt([]byte("half"), 0)
		r.requireNoError(err)
		r.PowerOff()
		_, err = w.WriteAt([]byte("rest"), 4)
		r.requireError(err, ErrPoweredOff)
		r.requireError(w.Close(), ErrPoweredOff)
		if got := r.read(`C:\up.bin`); got != "half" {
			t.Errorf("content %q", got)
		}
	})
	t.Run("the options are the same as in SFTP", func(t *testing.T) {
		r := bootMachine(t, nil)
		_, err := r.Drive().OpenWriter(`C:\f`, OpenWriterOptions{MustExist: true})
		r.requireError(err, host.ErrNotExist)
		r.write(`C:\f`, "content")
		_, err = r.Drive().OpenWriter(`C:\f`, OpenWriterOptions{Exclusive: true})
		r.requireError(err, host.ErrExist)
		w, err := r.Drive().OpenWriter(`C:\f`, OpenWriterOptions{Keep: true})
		r.requireNoError(err)
		_, err = w.WriteAt([]byte("C"), 0)
		r.requireNoError(err)
		r.requireNoError(w.Truncate(4))
		r.requireNoError(w.Close())
		if got := r.read(`C:\f`); got != "Cont" || r.drive.pendingBytes != 0 {
			t.Errorf("content %q, %d unborn", got, r.drive.pendingBytes)
		}
	})
	t.Run("a full disk refuses", func(t *testing.T) {
		r := bootMachine(t, nil)
		restore := r.FillDisk(4)
		defer restore()
		w, err := r.Drive().OpenWriter(`C:\f`, OpenWriterOptions{})
		r.requireNoError(err)
		_, err = w.WriteAt([]byte("12345"), 0)
		r.requireError(err, host.ErrDiskFull)
		_, err = w.WriteAt([]byte("1234"), 0)
		r.requireNoError(err)
		r.requireNoError(w.Close())
	})
}

func TestMountedDirectory(t *testing.T) {
	const pki = `C:\var\lib\kubelet\pki`
	mounted := func(t *testing.T) (*rig, string) {
		r := bootMachine(t, nil)
		onDisk := filepath.Join(t.TempDir(), "pki")
		r.requireNoError(r.Drive().MkdirAll(`C:\var\lib\kubelet`))
		r.MountDirectory(pki, onDisk)
		return r, onDisk
	}
	t.Run("the folder is there while the real one is", func(t *testing.T) {
		r, onDisk := mounted(t)
		_, err := r.Files.Stat(r.ctx, pki)
		r.requireError(err, host.ErrNotExist)
		r.requireNoError(r.Tree.MakeDirectory(r.ctx, pki, host.AccessAdministrators))
		info, err := r.Files.Stat(r.ctx, pki)
		r.requireNoError(err)
		if found, err := os.Stat(onDisk); err != nil || !found.IsDir() || info.Access != host.AccessAdministrators {
			t.Errorf("real folder: %v; %+v", err, info)
		}
		r.write(pki+`\key.pem`, "key")
		r.requireNoError(r.Files.Remove(r.ctx, `C:\var\lib`))
		if _, err := os.Stat(onDisk); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the real folder: %v", err)
		}
	})
	t.Run("what either side writes the other reads", func(t *testing.T) {
		r, onDisk := mounted(t)
		r.requireNoError(r.Tree.MakeDirectory(r.ctx, pki, host.AccessInherited))
		r.requireNoError(r.Files.Write(r.ctx, pki+`\Key.pem`, strings.NewReader("key"), host.WriteOptions{Access: host.AccessAdministrators}))
		data, err := os.ReadFile(filepath.Join(onDisk, "Key.pem"))
		r.requireNoError(err)
		r.requireNoError(os.WriteFile(filepath.Join(onDisk, "other.pem"), []byte("other"), 0o600))
		if string(data) != "key" || r.read(strings.ToUpper(pki+`\other.pem`)) != "other" {
			t.Errorf("%q %q", data, r.read(pki+`\other.pem`))
		}
		info, err := r.Files.Stat(r.ctx, pki+`\KEY.PEM`)
		r.requireNoError(err)
		if info.Access != host.AccessAdministrators || info.Name != "Key.pem" || info.Size != 3 {
			t.Errorf("%+v", info)
		}
		entries, err := r.Files.ReadDir(r.ctx, pki)
		r.requireNoError(err)
		above, err := r.Files.ReadDir(r.ctx, `C:\var\lib\kubelet`)
		r.requireNoError(err)
		if len(entries) != 2 || len(above) != 1 || above[0].Name != "pki" {
			t.Errorf("%v, above %v", entries, above)
		}
		if got, ok := r.RealPath(pki + `\key.pem`); !ok || got != filepath.Join(onDisk, "Key.pem") {
			t.Errorf("real path %q", got)
		}
		if _, ok := r.RealPath(`C:\Windows`); ok {
			t.Error("C:\\Windows is real")
		}
	})
	t.Run("links are translated both ways", func(t *testing.T) {
		r, onDisk := mounted(t)
		r.requireNoError(r.Tree.MakeDirectory(r.ctx, pki, host.AccessInherited))
		r.write(pki+`\one.pem`, "one")
		r.write(pki+`\two.pem`, "two")
		r.requireNoError(r.Tree.Symlink(r.ctx, pki+`\one.pem`, pki+`\current.pem`))
		target, err := os.Readlink(filepath.Join(onDisk, "current.pem"))
		r.requireNoError(err)
		if target != filepath.Join(onDisk, "one.pem") || r.read(pki+`\current.pem`) != "one" {
			t.Errorf("real target %s, content %q", target, r.read(pki+`\current.pem`))
		}
		r.requireNoError(os.Remove(filepath.Join(onDisk, "current.pem")))
		r.requireNoError(os.Symlink(filepath.Join(onDisk, "two.pem"), filepath.Join(onDisk, "current.pem")))
		info, err := r.Files.Stat(r.ctx, pki+`\current.pem`)
		r.requireNoError(err)
		if info.LinkTarget != pki+`\two.pem` || r.read(pki+`\current.pem`) != "two" {
			t.Errorf("%+v, content %q", info, r.read(pki+`\current.pem`))
		}
		r.requireNoError(r.Tree.Symlink(r.ctx, pki+`\current.pem`, `C:\from-outside`))
		if got := r.read(`C:\from-outside`); got != "two" {
			t.Errorf("through a link from outside: %q", got)
		}
	})
	t.Run("a rename moves files in, within and out, and the snapshot has them", func(t *testing.T) {
		r, _ := mounted(t)
		r.requireNoError(r.Tree.MakeDirectory(r.ctx, pki, host.AccessInherited))
		r.write(`C:\new.pem`, "new")
		r.requireNoError(r.Tree.Rename(r.ctx, `C:\new.pem`, pki+`\a.pem`))
		r.requireNoError(r.Tree.Rename(r.ctx, pki+`\a.pem`, pki+`\b.pem`))
		if file := r.Snapshot().Files[pki+`\b.pem`]; file.Size != 3 || file.SHA256 == "" {
			t.Errorf("%+v", file)
		}
		r.requireNoError(r.Tree.Rename(r.ctx, pki+`\b.pem`, `C:\c.pem`))
		if r.read(`C:\c.pem`) != "new" || r.drive.pendingBytes != 0 {
			t.Errorf("%q", r.read(`C:\c.pem`))
		}
	})
}
