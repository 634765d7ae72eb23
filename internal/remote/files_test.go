package remote_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pkg/sftp"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// cutConn is a connection that breaks after a number of received bytes.
type cutConn struct {
	net.Conn
	left atomic.Int64
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.left.Add(-int64(n)) < 0 {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// testContent returns n bytes that do not repeat.
func testContent(n int) []byte {
	data := make([]byte, n)
	state := uint32(1)
	for i := range data {
		state = state*1664525 + 1013904223
		data[i] = byte(state >> 24)
	}
	return data
}

func agentOf(program []byte) remote.Agent {
	sum := sha256.Sum256(program)
	return remote.Agent{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(program)),
		Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(program)), nil
		}}
}

// sftpForm returns the location of a Windows path on the test's disk.
func sftpForm(windows string) string { return strings.ReplaceAll(windows, `\`, "/") }

func TestEnsureAgent(t *testing.T) {
	program := testContent(5<<20 + 17)
	agent := agentOf(program)
	t.Run("is sent to a host that lacks it, and only then", func(t *testing.T) {
		noLeaks(t)
		s, c := hostWith(t, nil)
		var last int64
		path, sent, err := c.EnsureAgent(t.Context(), agent, func(done, total int64) {
			if done < last || total != agent.Size {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		})
		if err != nil || !sent || path != `C:\ProgramData\ssh\wicd\`+agent.SHA256[:12]+`\wicd.exe` {
			t.Fatalf("%s, %v, %v", path, sent, err)
		}
		if last != agent.Size || !bytes.Equal(s.disk.readFile(sftpForm(path)), program) {
			t.Error("it did not arrive whole")
		}
		agent := agent
		agent.Open = func() (io.ReadCloser, error) { return nil, errors.New("not needed") }
		again, sent, err := c.EnsureAgent(t.Context(), agent, nil)
		if err != nil || sent || again != path {
			t.Errorf("%s, %v, %v", again, sent, err)
		}
		if s.connections.Load() != 1 || s.fileSessions.Load() != 1 {
			t.Errorf("%d connections, %d SFTP sessions", s.connections.Load(), s.fileSessions.Load())
		}
	})
	for name, renames := range map[string]bool{"where a rename replaces": true, "where a rename does not replace": false} {
		t.Run("one of another size is replaced "+name, func(t *testing.T) {
			s, c := hostWith(t, nil, func(s *server) { s.disk.renames = renames })
			s.disk.writeFile(sftpForm(nodespec.LandingPath(agent.SHA256)), "half")
			path, sent, err := c.EnsureAgent(t.Context(), agent, nil)
			if err != nil || !sent || !bytes.Equal(s.disk.readFile(sftpForm(path)), program) {
				t.Errorf("%v, %v", sent, err)
			}
			if names := s.disk.listNames(sftpForm(path[:strings.LastIndex(path, `\`)])); len(names) != 1 {
				t.Errorf("left are %v", names)
			}
		})
	}
	t.Run("leftovers of broken uploads go, other files stay", func(t *testing.T) {
		s, c := hostWith(t, nil)
		dir := sftpForm(nodespec.LandingPath(agent.SHA256)[:strings.LastIndex(nodespec.LandingPath(agent.SHA256), `\`)])
		s.disk.writeFile(dir+"/wicd.exe.partial-01234567", "half")
		s.disk.writeFile(dir+"/WICD.EXE.PARTIAL-abcdef", "half")
		s.disk.writeFile(dir+"/other.txt", "other")
		if _, _, err := c.EnsureAgent(t.Context(), agent, nil); err != nil {
			t.Fatal(err)
		}
		if names := s.disk.listNames(dir); !slices.Equal(names, []string{"other.txt", "wicd.exe"}) {
			t.Errorf("left are %v", names)
		}
	})
	t.Run("an invalid digest is refused", func(t *testing.T) {
		_, c := hostWith(t, nil)
		if _, _, err := c.EnsureAgent(t.Context(), remote.Agent{SHA256: `..\..\x`}, nil); err == nil {
			t.Error("it was accepted")
		}
	})
}

//
func TestEnsureAgent_InterruptedTransferRepeated(t *testing.T) {
	program := testContent(3 << 20)
	agent := agentOf(program)
	key := newKey(t)
	for _, cut := range []int64{3 << 10, 100 << 10, 1 << 20, 2<<20 + 12345} {
		t.Run(fmt.Sprintf("after %d bytes", cut), func(t *testing.T) {
			noLeaks(t)
			s := newServer(t, key)
			var connections atomic.Int32
			s.wrap = func(conn net.Conn) net.Conn {
				if connections.Add(1) > 1 {
					return conn
				}
				faulty := &cutConn{Conn: conn}
				faulty.left.Store(cut)
				return faulty
			}
			c := s.mustConnect(&remote.Dialer{}, key)
			_, _, err := c.EnsureAgent(t.Context(), agent, nil)
			expectError(t, err, remote.ReasonConnectionLost)
			<-c.Done()
			if s.disk.hasFile(sftpForm(nodespec.LandingPath(agent.SHA256))) {
				t.Error("half a program lies under the agent's name")
			}
			again := s.mustConnect(&remote.Dialer{}, key)
			if _, sent, err := again.EnsureAgent(t.Context(), agent, nil); err != nil || !sent {
				t.Fatal(sent, err)
			}
			if !bytes.Equal(s.disk.readFile(sftpForm(nodespec.LandingPath(agent.SHA256))), program) {
				t.Error("it did not arrive whole")
			}
			if names := s.disk.listNames("C:/ProgramData/ssh/wicd/" + agent.SHA256[:12]); len(names) != 1 {
				t.Errorf("left are %v", names)
			}
		})
	}
}

func TestUpload_ConcurrentlyCreatedDirectoryIsNoError(t *testing.T) {
	s, c := hostWith(t, nil, func(s *server) {
		s.disk.writeFile("C:/k/wicd/other", "x")
		s.disk.failures["List /C:/k/wicd"] = sftp.ErrSSHFxNoSuchFile // the directory did not exist yet
	})
	if err := c.Upload(t.Context(), `C:\k\wicd\new`, 3, strings.NewReader("new"), nil); err != nil {
		t.Fatal(err)
	}
	if got := string(s.disk.readFile("C:/k/wicd/new")); got != "new" {
		t.Errorf("it is %q", got)
	}
}

func TestUpload_FailureNamesCause(t *testing.T) {
	const path = `C:\k\wicd\inbox\spec-0123456789ab.json`
	data := testContent(2 << 20)
	upload := func(ctx context.Context, c *remote.Connection) error {
		return c.Upload(ctx, path, int64(len(data)), bytes.NewReader(data), nil)
	}
	clean := func(t *testing.T, s *server) {
		t.Helper()
		if names := s.disk.listNames("C:/k/wicd/inbox"); len(names) != 0 {
			t.Errorf("left are %v", names)
		}
	}
	for name, silent := range map[string]bool{"a full disk": false, "a full disk on a server that does not say so": true} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			s, c := hostWith(t, nil, func(s *server) { s.disk.free, s.disk.silent = 1<<20, silent })
			expectError(t, upload(t.Context(), c), remote.ReasonDiskFull, "drive C:", path)
			clean(t, s)
			s.disk.mu.Lock()
			s.disk.free = -1
			s.disk.mu.Unlock()
			if err := upload(t.Context(), c); err != nil {
				t.Errorf("with room again: %v", err)
			}
		})
	}
	t.Run("a user who is no administrator", func(t *testing.T) {
		_, c := hostWith(t, nil, func(s *server) { s.disk.failures["Mkdir /C:/k"] = sftp.ErrSSHFxPermissionDenied })
		expectError(t, upload(t.Context(), c), remote.ReasonTransferFailed, "permission denied for user Administrator", "group Administrators")
	})
	t.Run("a file where a folder must be", func(t *testing.T) {
		s, c := hostWith(t, nil)
		s.disk.writeFile("C:/k/wicd", "file")
		expectError(t, upload(t.Context(), c), remote.ReasonTransferFailed)
	})
	t.Run("a source that ends early", func(t *testing.T) {
		s, c := hostWith(t, nil)
		err := c.Upload(t.Context(), path, 100, strings.NewReader("short"), nil)
		expectError(t, err, remote.ReasonTransferFailed, "5 of 100 bytes")
		clean(t, s)
	})
	t.Run("a source that is too long", func(t *testing.T) {
		s, c := hostWith(t, nil)
		err := c.Upload(t.Context(), path, 4, strings.NewReader("longer"), nil)
		expectError(t, err, remote.ReasonTransferFailed, "announced 4 bytes")
		clean(t, s)
	})
	t.Run("a source that cannot be read", func(t *testing.T) {
		_, c := hostWith(t, nil)
		err := c.Upload(t.Context(), path, 4, iotest.ErrReader(errors.New("bad sector")), nil)
		expectError(t, err, remote.ReasonTransferFailed, "bad sector")
	})
	t.Run("a path that is not plain", func(t *testing.T) {
		_, c := hostWith(t, nil)
		if err := c.Upload(t.Context(), `C:\k\..\Windows\x`, 4, strings.NewReader("xxxx"), nil); err == nil {
			t.Error("it was accepted")
		}
	})
	t.Run("a server without SFTP", func(t *testing.T) {
		_, c := hostWith(t, nil, func(s *server) { s.refuse = "files" })
		expectError(t, upload(t.Context(), c), remote.ReasonTransferFailed, "Subsystem sftp")
	})
	t.Run("a name that cannot be taken", func(t *testing.T) {
		s, c := hostWith(t, nil, func(s *server) { s.disk.failures["Rename"] = sftp.ErrSSHFxFailure })
		expectError(t, upload(t.Context(), c), remote.ReasonTransferFailed, "rename the received file")
		clean(t, s)
	})
	t.Run("an empty file is no failure", func(t *testing.T) {
		s, c := hostWith(t, nil)
		if err := c.Upload(t.Context(), path, 0, strings.NewReader(""), nil); err != nil {
			t.Fatal(err)
		}
		if len(s.disk.readFile(sftpForm(path))) != 0 {
			t.Error("it is not empty")
		}
	})
	t.Run("the operator stops in the middle", func(t *testing.T) {
		noLeaks(t)
		ctx, cancel := context.WithCancel(t.Context())
		key := newKey(t)
		s := newServer(t, key)
		s.disk.writes = cancel
		c := s.mustConnect(&remote.Dialer{Limits: remote.Limits{EndTimeout: 10 * time.Minute}}, key) // otherwise a busy machine may lose the connection
		expectCanceled(t, upload(ctx, c))
		s.disk.mu.Lock()
		s.disk.writes = nil
		s.disk.mu.Unlock()
		if err := upload(t.Context(), c); err != nil {
			t.Errorf("again on the same connection: %v", err)
		}
	})
}

func TestFiles_HangingHostTimesOut(t *testing.T) {
	t.Run("before SFTP begins", func(t *testing.T) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		s.deafTo = "files"
		d, clock := fakeDialer()
		c := s.mustConnect(d, key)
		wait := inBackground(func() error {
			_, err := c.Exists(t.Context(), `C:\k`)
			return err
		})
		clock.awaitTimer(execStartTimeout) // timer of the session
		<-s.hung
		clock.passTimer(execStartTimeout)
		expectTimeout(t, wait(), remote.ReasonConnectionTimedOut, "the SSH server to start a program")
	})
	stall := func(t *testing.T) (*server, *remote.Connection, *testClock) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		s.disk.server = s
		s.disk.hang["Mkdir /C:/k"] = true
		d, clock := fakeDialer()
		return s, s.mustConnect(d, key), clock
	}
	t.Run("in the middle of a transfer", func(t *testing.T) {
		s, c, clock := stall(t)
		wait := inBackground(func() error { return c.Upload(t.Context(), `C:\k\x`, 4, strings.NewReader("file"), nil) })
		<-s.hung
		clock.passTimer(stallTimeout)
		expectTimeout(t, wait(), remote.ReasonTransferFailed, `a response while sending C:\k\x`)
		<-c.Done()
	})
	t.Run("until the operator stops", func(t *testing.T) {
		s, c, clock := stall(t)
		ctx, cancel := context.WithCancel(t.Context())
		wait := inBackground(func() error { return c.Upload(ctx, `C:\k\x`, 4, strings.NewReader("file"), nil) })
		<-s.hung
		cancel()
		clock.passTimer(endTimeout)
		expectCanceled(t, wait())
	})
}

func TestExists(t *testing.T) {
	_, c := hostWith(t, nil, func(s *server) {
		s.disk.writeFile("C:/k/file", "x")
		s.disk.failures["Stat /C:/secret"] = sftp.ErrSSHFxPermissionDenied
	})
	for path, want := range map[string]bool{`C:\k`: true, `C:\k\file`: true, `C:\k\missing`: false,
		`C:\no\folder`: false} {
		if got, err := c.Exists(t.Context(), path); err != nil || got != want {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	_, err := c.Exists(t.Context(), `C:\secret`)
	expectError(t, err, remote.ReasonTransferFailed, "permission denied for user")
}

func TestRemove(t *testing.T) {
	fill := func(s *server) {
		for _, name := range []string{"k/a", "k/wicd/b", "k/wicd/deep/er/c", "var/log/kubelet/d", "Windows/e"} {
			s.disk.writeFile("C:/"+name, "x")
		}
	}
	t.Run("deletes files and folders, and nothing else", func(t *testing.T) {
		s, c := hostWith(t, nil)
		fill(s)
		if err := os.Symlink(s.disk.localPath("C:/Windows"), s.disk.localPath("C:/k/link")); err != nil {
			t.Fatal(err)
		}
		if err := c.Remove(t.Context(), `C:\k`, `C:\var\log\kubelet\d`, `C:\not\there`); err != nil {
			t.Fatal(err)
		}
		if s.disk.hasFile("C:/k") || s.disk.hasFile("C:/var/log/kubelet/d") || !s.disk.hasFile("C:/var/log/kubelet") ||
			!s.disk.hasFile("C:/Windows/e") {
			t.Errorf("left are %v", s.disk.listNames("C:"))
		}
	})
	t.Run("deletes junctions, and not what they lead to", func(t *testing.T) {
		for _, junction := range []string{"C:/k/wicd/junction", "C:/k"} {
			s, c := hostWith(t, nil)
			fill(s)
			s.disk.junction = junction
			if err := errors.Join(os.RemoveAll(s.disk.localPath(junction)), os.Symlink(s.disk.localPath("C:/Windows"), s.disk.localPath(junction))); err != nil {
				t.Fatal(err)
			}
			if err := c.Remove(t.Context(), `C:\k`); err != nil {
				t.Error(err)
			}
			if s.disk.hasFile("C:/k") || !s.disk.hasFile("C:/Windows/e") {
				t.Errorf("with a junction at %s, left are %v", junction, s.disk.listNames("C:"))
			}
		}
	})
	t.Run("a junction that cannot be deleted is not followed", func(t *testing.T) {
		s, c := hostWith(t, nil, func(s *server) { s.disk.failures["Rmdir /C:/k/junction"] = sftp.ErrSSHFxPermissionDenied })
		fill(s)
		s.disk.junction = "C:/k/junction"
		if err := os.Symlink(s.disk.localPath("C:/Windows"), s.disk.localPath(s.disk.junction)); err != nil {
			t.Fatal(err)
		}
		expectError(t, c.Remove(t.Context(), `C:\k`), remote.ReasonRemovalIncomplete, `not deleted: C:\k\junction`)
		if !s.disk.hasFile("C:/Windows/e") {
			t.Error("its target was emptied")
		}
	})
	t.Run("goes on after a file that is in use, and names it", func(t *testing.T) {
		s, c := hostWith(t, nil, func(s *server) { s.disk.failures["Remove /C:/k/wicd/b"] = sftp.ErrSSHFxFailure })
		fill(s)
		err := c.Remove(t.Context(), `C:\k`, `C:\var`)
		expectError(t, err, remote.ReasonRemovalIncomplete, `not deleted: C:\k\wicd\b`)
		var left *remote.LeftBehindError
		if !errors.As(err, &left) || len(left.Files) != 1 {
			t.Errorf("%v", err)
		}
		if s.disk.hasFile("C:/k/a") || s.disk.hasFile("C:/k/wicd/deep") || s.disk.hasFile("C:/var") || !s.disk.hasFile("C:/k/wicd/b") {
			t.Errorf("left are %v", s.disk.listNames("C:"))
		}
	})
	t.Run("never a whole drive, and no path that is not plain", func(t *testing.T) {
		s, c := hostWith(t, nil)
		fill(s)
		for _, path := range []string{`C:\`, `C:`, `C:\k\..`, ``, `\`} {
			if err := c.Remove(t.Context(), path); err == nil {
				t.Errorf("%q was deleted", path)
			}
		}
		if !s.disk.hasFile("C:/k/a") {
			t.Error("something was deleted")
		}
	})
	t.Run("a lost connection is reported as such", func(t *testing.T) {
		s, c := hostWith(t, nil)
		fill(s)
		s.cutConnections()
		expectError(t, c.Remove(t.Context(), `C:\k`), remote.ReasonConnectionLost)
	})
}
