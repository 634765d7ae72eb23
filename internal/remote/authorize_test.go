package remote_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/remote"
)

const (
	administratorsFile = "C:/ProgramData/ssh/administrators_authorized_keys"
	ownFile            = "C:/Users/Administrator/.ssh/authorized_keys"
)

// a host that still has the previous key receives the new key.
func TestAuthorize(t *testing.T) {
	fresh := newKey(t)
	line := fresh.AuthorizedKey()
	previous := newKey(t).AuthorizedKey()
	authorize := func(t *testing.T, c *remote.Connection) error {
		t.Helper()
		return remote.Authorize(t.Context(), c, fresh.Signer().PublicKey(), "Administrator")
	}
	for name, before := range map[string]string{
		"a list with lines as on Linux":                 previous + "\n",
		"a list with lines as on Windows":               previous + "\r\n",
		"a list that lacks the end of its last line":    previous,
		"the same, as on Windows":                       "# keys\r\n" + previous,
		"a list with comments and keys of others":       "# keys\n\n" + previous + " me@there\n" + `from="10.0.0.1" ` + previous + "\n",
		"an empty list":                                 "",
		"a line that an attempt has left which was cut": previous + "\n" + line[:40],
		"the key with an option":                        `command="cmd.exe" ` + line + "\n",
		"the key in a comment":                          "# " + line + "\n",
	} {
		t.Run("adds the key to "+name, func(t *testing.T) {
			s, c := hostWith(t, nil, func(s *server) { s.disk.writeFile(administratorsFile, before) })
			inode := fileOf(t, s)
			if err := authorize(t, c); err != nil {
				t.Fatal(err)
			}
			got := string(s.disk.readFile(administratorsFile))
			added, kept := strings.CutPrefix(got, before)
			if !kept {
				t.Fatalf("what was there is changed: %q", got)
			}
			end := "\n"
			if strings.Contains(before, "\r\n") {
				end = "\r\n"
			}
			if want := line + end; added != want && (before == "" || strings.HasSuffix(before, "\n") || added != end+want) {
				t.Errorf("added is %q", added)
			}
			if !os.SameFile(inode, fileOf(t, s)) {
				t.Error("it is another file, which has another access list")
			}
			if err := authorize(t, c); err != nil || string(s.disk.readFile(administratorsFile)) != got {
				t.Errorf("it is added again: %q, error %v", s.disk.readFile(administratorsFile), err)
			}
		})
	}
	t.Run("writes nothing when the key is there", func(t *testing.T) {
		_, c := hostWith(t, nil, func(s *server) {
			s.disk.writeFile(administratorsFile, previous+"\r\n"+line+" the operator's\r\n")
			s.disk.writes = func() { t.Error("something is written") }
		})
		if err := authorize(t, c); err != nil {
			t.Error(err)
		}
	})
	t.Run("takes the user's own file where administrators have none", func(t *testing.T) {
		s, c := hostWith(t, nil, func(s *server) { s.disk.writeFile(ownFile, previous+"\n") })
		if err := authorize(t, c); err != nil {
			t.Fatal(err)
		}
		if got := string(s.disk.readFile(ownFile)); got != previous+"\n"+line+"\n" || s.disk.hasFile(administratorsFile) {
			t.Errorf("it is %q", got)
		}
	})
	t.Run("leaves the user's own file alone where administrators have one", func(t *testing.T) {
		s, c := hostWith(t, nil, func(s *server) {
			s.disk.writeFile(administratorsFile, previous+"\n")
			s.disk.writeFile(ownFile, previous+"\n")
		})
		if err := authorize(t, c); err != nil || string(s.disk.readFile(ownFile)) != previous+"\n" {
			t.Errorf("error %v, file %q", err, s.disk.readFile(ownFile))
		}
	})
	t.Run("takes the file by which it was let in: sshd was told not to read that of administrators", func(t *testing.T) {
		key := newKey(t)
		s := newServer(t, key)
		s.disk.writeFile(administratorsFile, previous+"\n")
		s.disk.writeFile(ownFile, key.AuthorizedKey()+"\n")
		if err := authorize(t, s.mustConnect(&remote.Dialer{}, key)); err != nil {
			t.Fatal(err)
		}
		if own, other := string(s.disk.readFile(ownFile)), string(s.disk.readFile(administratorsFile)); !strings.HasSuffix(own, line+"\n") || other != previous+"\n" {
			t.Errorf("own file %q, that of administrators %q", own, other)
		}
	})
	t.Run("makes no file: sshd was told to read another", func(t *testing.T) {
		s, c := hostWith(t, nil)
		expectError(t, authorize(t, c), remote.ReasonTransferFailed, "administrators_authorized_keys", `C:\Users\Administrator\.ssh\authorized_keys`, "sshd_config")
		if s.disk.hasFile(administratorsFile) || s.disk.hasFile(ownFile) {
			t.Error("a file was made")
		}
	})
	t.Run("names the file that it may not write", func(t *testing.T) {
		_, c := hostWith(t, nil, func(s *server) {
			s.disk.writeFile(administratorsFile, previous+"\n")
			s.disk.failures["Put"] = sftp.ErrSSHFxPermissionDenied
		})
		expectError(t, authorize(t, c), remote.ReasonTransferFailed, "permission denied for user Administrator", "group Administrators")
	})
	t.Run("does not take a lost write for success", func(t *testing.T) {
		_, c := hostWith(t, nil, func(s *server) {
			s.disk.writeFile(administratorsFile, previous+"\n")
			s.disk.free = 0
		})
		expectError(t, authorize(t, c), remote.ReasonTransferFailed, "not enough space")
	})
	t.Run("does not read without end", func(t *testing.T) {
		_, c := hostWith(t, nil, func(s *server) { s.disk.writeFile(administratorsFile, strings.Repeat("x", 1<<20+1)) })
		expectError(t, authorize(t, c), remote.ReasonTransferFailed, "not a list of keys")
	})
	t.Run("tells of a lost connection as such", func(t *testing.T) {
		s, c := hostWith(t, nil, func(s *server) { s.disk.writeFile(administratorsFile, previous+"\n") })
		s.cutConnections()
		expectError(t, authorize(t, c), remote.ReasonConnectionLost)
	})
	t.Run("needs a key", func(t *testing.T) {
		_, c := hostWith(t, nil)
		if err := remote.Authorize(t.Context(), c, ssh.PublicKey(nil), "Administrator"); err == nil {
			t.Error("no error")
		}
	})
}

func fileOf(t *testing.T, s *server) os.FileInfo {
	t.Helper()
	info, err := os.Stat(s.disk.localPath(administratorsFile))
	if err != nil {
		t.Fatal(err)
	}
	return info
}
