package winhost_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"testing"

	"github.com/pkg/sftp"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

func (l *lab) openSFTP() *sftp.Client {
	l.t.Helper()
	client, err := sftp.NewClient(l.dialAdministrator(), sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(64))
	requireNoError(l.t, err)
	l.t.Cleanup(func() { _ = client.Close() })
	return client
}

func uploadFile(client *sftp.Client, path string, content []byte) error {
	file, err := client.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = file.ReadFrom(bytes.NewReader(content))
	return errors.Join(err, file.Close())
}

func randomBytes(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.New(rand.NewSource(3)).Read(content) // never fails
	return content
}

func statusCode(err error) uint32 {
	var status *sftp.StatusError
	if errors.As(err, &status) {
		return status.Code
	}
	return 0
}

// failure is SSH_FX_FAILURE, which has no further details.
const failure = 4

func TestUpload(t *testing.T) {
	l := newLab(t)
	client := l.openSFTP()
	content := randomBytes(5<<20 + 17)
	requireNoError(t, client.Mkdir("/C:/k/inbox"))
	requireNoError(t, uploadFile(client, "/C:/k/inbox/payload.part", content))
	requireNoError(t, client.Rename("/C:/k/inbox/payload.part", "/C:/k/inbox/payload.zst"))
	t.Run("concurrent writes arrive intact", func(t *testing.T) {
		arrived, err := l.machine.Drive().ReadFile(`C:\k\inbox\payload.zst`)
		requireNoError(t, err)
		if sha256.Sum256(arrived) != sha256.Sum256(content) {
			t.Errorf("%d bytes arrived, of %d, with another digest", len(arrived), len(content))
		}
	})
	t.Run("and can be read back, whatever the path looks like", func(t *testing.T) {
		for _, path := range []string{"/C:/k/inbox/payload.zst", "C:/k/inbox/payload.zst", `C:\K\inbox\PAYLOAD.zst`,
			"/c:/k/x/../inbox/payload.zst"} {
			file, err := client.Open(path)
			requireNoError(t, err)
			back, err := io.ReadAll(file)
			requireNoError(t, err)
			if !bytes.Equal(back, content) {
				t.Errorf("%s: read %d bytes that differ", path, len(back))
			}
		}
	})
	t.Run("the bytes are in the journal", func(t *testing.T) {
		if received, _ := l.host.Traffic(); received < int64(len(content)) {
			t.Errorf("%d bytes were received for %d", received, len(content))
		}
		if n := l.machine.Journal().Count(fake.KindSFTP); n != 1 {
			t.Errorf("%d SFTP sessions", n)
		}
	})
	t.Run("the size of an open file is what has arrived", func(t *testing.T) {
		file, err := client.OpenFile("/C:/k/growing", os.O_WRONLY|os.O_CREATE)
		requireNoError(t, err)
		_, err = file.Write(make([]byte, 1000))
		requireNoError(t, err)
		if info, err := file.Stat(); err != nil || info.Size() != 1000 {
			t.Errorf("got %v, %v", info, err)
		}
		requireNoError(t, file.Truncate(10))
		requireNoError(t, file.Close())
		if info, err := client.Stat("/C:/k/growing"); err != nil || info.Size() != 10 {
			t.Errorf("got %v, %v", info, err)
		}
	})
}

func TestSFTP_FileHeldByScannerNotRenamed(t *testing.T) {
	l := newLab(t)
	client := l.openSFTP()
	restore := l.host.Inject(winhost.RenameRefused, winhost.Parameters{Duration: waitTimeout})
	requireNoError(t, uploadFile(client, "/C:/k/new.partial", []byte("new")))
	if err := client.Rename("/C:/k/new.partial", "/C:/k/new"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("it was renamed: %v", err)
	}
	if err := client.Remove("/C:/k/new.partial"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("it was deleted: %v", err)
	}
	restore()
	requireNoError(t, client.Rename("/C:/k/new.partial", "/C:/k/new"))
}

func TestSFTP_FilesBehaveLikeWindows(t *testing.T) {
	l := newLab(t)
	client := l.openSFTP()
	requireNoError(t, uploadFile(client, "/C:/k/a", []byte("a")))
	requireNoError(t, uploadFile(client, "/C:/k/b", []byte("b")))
	t.Run("a rename replaces nothing", func(t *testing.T) {
		if err := client.Rename("/C:/k/a", "/C:/k/b"); statusCode(err) != failure {
			t.Errorf("got %v", err)
		}
	})
	t.Run("posix-rename is not offered", func(t *testing.T) {
		if _, offered := client.HasExtension("posix-rename@openssh.com"); offered || client.PosixRename("/C:/k/a", "/C:/k/b") == nil {
			t.Error("it is")
		}
	})
	t.Run("a junction is shown as a folder, and is deleted as one, without its target", func(t *testing.T) {
		requireNoError(t, l.machine.Drive().MkdirAll(`C:\target`))
		requireNoError(t, l.machine.Drive().WriteFile(`C:\target\file`, []byte("x")))
		requireNoError(t, l.machine.Drive().Junction(`C:\target`, `C:\junction`))
		if info, err := client.Lstat("/C:/junction"); err != nil || !info.IsDir() {
			t.Errorf("got %v, %v", info, err)
		}
		if target, err := client.ReadLink("/C:/junction"); err == nil {
			t.Errorf("it leads to %s", target)
		}
		if entries, err := client.ReadDir("/C:/junction"); err != nil || len(entries) != 1 {
			t.Errorf("got %v, %v", entries, err)
		}
		requireNoError(t, client.RemoveDirectory("/C:/junction"))
		if _, err := client.Stat("/C:/target/file"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a missing file is missing", func(t *testing.T) {
		if _, err := client.Stat("/C:/k/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("stat: %v", err)
		}
		if err := uploadFile(client, "/C:/none/x", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("upload: %v", err)
		}
		if _, err := client.Stat("/D:/x"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("another drive: %v", err)
		}
	})
	t.Run("a folder that is there cannot be made again", func(t *testing.T) {
		if err := client.Mkdir("/C:/k"); statusCode(err) != failure {
			t.Errorf("got %v", err)
		}
		requireNoError(t, client.MkdirAll("/C:/k/wicd/inbox"))
	})
	t.Run("a file that is open cannot be opened for writing again", func(t *testing.T) {
		file, err := client.Create("/C:/k/open")
		requireNoError(t, err)
		defer func() { requireNoError(t, file.Close()) }()
		if err := uploadFile(client, "/C:/k/open", nil); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("links are shown and followed", func(t *testing.T) {
		requireNoError(t, client.Symlink("/C:/k/a", "/C:/k/link"))
		link, err := client.ReadLink("/C:/k/link")
		if link != "/C:/k/a" || err != nil {
			t.Errorf("the link is %q, %v", link, err)
		}
		if info, err := client.Stat("/C:/k/link"); err != nil || !info.Mode().IsRegular() || info.Size() != 1 {
			t.Errorf("stat: %v, %v", info, err)
		}
		if info, err := client.Lstat("/C:/k/link"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("lstat: %v, %v", info, err)
		}
	})
	t.Run("folders are listed", func(t *testing.T) {
		for path, want := range map[string]string{"/": "C:", "/C:/k": "wicd", "/C:/": "Windows"} {
			infos, err := client.ReadDir(path)
			requireNoError(t, err)
			found := false
			for _, info := range infos {
				found = found || info.Name() == want && info.IsDir()
			}
			if !found {
				t.Errorf("%s does not list %s", path, want)
			}
		}
	})
	t.Run("a session begins in the user's profile", func(t *testing.T) {
		if wd, err := client.Getwd(); wd != "/C:/Users/Administrator" || err != nil {
			t.Errorf("got %q, %v", wd, err)
		}
	})
	t.Run("files and folders are removed, each in its way", func(t *testing.T) {
		requireNoError(t, client.Remove("/C:/k/a"))
		requireNoError(t, client.RemoveDirectory("/C:/k/wicd/inbox"))
		if err := client.RemoveDirectory("/C:/k"); statusCode(err) != failure {
			t.Errorf("a folder that is not empty: %v", err)
		}
	})
}

func TestSFTP_RunningExecutableNotReplaced(t *testing.T) {
	l := newLab(t)
	client := l.openSFTP()
	session, err := l.dialAdministrator().NewSession()
	requireNoError(t, err)
	requireNoError(t, session.Start(`C:\k\wait.exe`))
	l.awaitMachine("it runs", func(m *fake.Machine) bool { return m.Journal().Count(fake.KindExec) == 1 })
	if err := uploadFile(client, "/C:/k/wait.exe", []byte("MZ print")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("write: %v", err)
	}
	if err := client.Remove("/C:/k/wait.exe"); err == nil {
		t.Error("it was removed")
	}
	requireNoError(t, session.Close())
	l.awaitMachine("it ends with its session", func(m *fake.Machine) bool {
		return len(l.processEndings()) == 1
	})
	requireNoError(t, uploadFile(client, "/C:/k/wait.exe", []byte("MZ print")))
}

func TestSFTP_FullDiskFailsUpload(t *testing.T) {
	l := newLab(t)
	client := l.openSFTP()
	restore := l.host.Inject(winhost.FillDisk, winhost.Parameters{Bytes: 1 << 20})
	if err := uploadFile(client, "/C:/k/payload", randomBytes(2<<20)); statusCode(err) != failure {
		t.Errorf("got %v", err)
	}
	if volume, err := client.StatVFS("/C:/k"); err != nil || volume.Bavail*volume.Frsize > 1<<20 {
		t.Errorf("the free space is reported as %+v, %v", volume, err)
	}
	restore()
	requireNoError(t, uploadFile(client, "/C:/k/payload", randomBytes(2<<20)))
}
