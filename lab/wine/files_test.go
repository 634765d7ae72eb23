package wine

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestFiles(t *testing.T) {
	h := newHost(t, Options{Name: "files", Address: hostAddress(12)})
	connection, err := h.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client, err := sftp.NewClient(connection, sftp.UseConcurrentWrites(true))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	content := make([]byte, 32<<20)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	t.Run("what was written is read again, here and on the host", func(t *testing.T) {
		if err := client.MkdirAll("/C:/k/wicd/inbox"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		write(t, client, "/C:/k/wicd/inbox/a.partial", content)
		t.Logf("%d MiB written in %v", len(content)>>20, time.Since(start))
		file, err := client.Open("/C:/k/wicd/inbox/a.partial")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if got, err := io.ReadAll(file); err != nil || !bytes.Equal(got, content) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		path, err := h.Path(`c:\K\Wicd\inbox\A.partial`)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
			t.Errorf("on this machine: %d bytes, %v", len(got), err)
		}
	})
	t.Run("a file is renamed to a new name, but not over another", func(t *testing.T) {
		if err := client.Rename("/C:/k/wicd/inbox/a.partial", "/C:/k/wicd/inbox/a"); err != nil {
			t.Fatal(err)
		}
		write(t, client, "/C:/k/wicd/inbox/b", []byte("b"))
		if err := client.Rename("/C:/k/wicd/inbox/b", "/C:/k/wicd/inbox/a"); err == nil {
			t.Error("it replaced a file")
		}
		if info, err := client.Stat("/C:/k/wicd/inbox/a"); err != nil || info.Size() != int64(len(content)) {
			t.Errorf("%v, %v", info, err)
		}
		if _, offered := client.HasExtension("posix-rename@openssh.com"); offered {
			t.Error("the server offers a rename that replaces")
		}
	})
	t.Run("what is not there does not exist", func(t *testing.T) {
		if _, err := client.Stat("/C:/k/nothing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		if _, err := client.ReadDir("/C:/nowhere"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a program that runs can neither be overwritten nor removed", func(t *testing.T) {
		if err := h.Upload(t.Context(), guest, `C:\k\running.exe`); err != nil {
			t.Fatal(err)
		}
		session, err := connection.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if err := session.Start(`C:\k\running.exe sleep C:\running.pid`); err != nil {
			t.Fatal(err)
		}
		awaitCondition(t, "it runs", func() bool {
			info, err := client.Stat("/C:/running.pid")
			return err == nil && info.Size() > 0
		})
		if file, err := client.OpenFile("/C:/k/running.exe", os.O_WRONLY|os.O_TRUNC); err == nil {
			_ = file.Close()
			t.Error("it could be overwritten")
		}
		if client.Remove("/C:/k/running.exe") == nil {
			t.Error("it could be removed")
		}
	})
	t.Run("the drive tells what room it has", func(t *testing.T) {
		if volume, err := client.StatVFS("/C:/k"); err != nil || volume.Bavail == 0 {
			t.Errorf("%+v, %v", volume, err)
		}
	})
	t.Run("the start folder is the user's", func(t *testing.T) {
		if got, err := client.Getwd(); err != nil || got != "/C:/Users/Administrator" {
			t.Errorf("%s, %v", got, err)
		}
	})
	t.Run("the base does not change with a clone", func(t *testing.T) {
		path, err := drivePath(base.Prefix, `C:\k`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder is in the base: %v", err)
		}
	})
}

func write(t *testing.T, client *sftp.Client, path string, content []byte) {
	t.Helper()
	file, err := client.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.ReadFrom(bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDrivePath(t *testing.T) {
	for _, windows := range []string{`k\x`, `D:\x`, `C:\..\x`, `C:\a/b`, `C:`, `C:\a:b`} {
		if path, err := drivePath("/prefix", windows); err == nil {
			t.Errorf("%s is %s", windows, path)
		}
	}
	if path, err := drivePath("/prefix", `c:\k\x.exe`); err != nil || !strings.HasSuffix(path, "drive_c/k/x.exe") {
		t.Errorf("got %s, %v", path, err)
	}
}
