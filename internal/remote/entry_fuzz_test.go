package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// an entry of the host list is an address to dial and a login name. It cannot become an option, a port or a
// path.
func FuzzEntriesAreAddressesAndUsersAndNothingElse(f *testing.F) {
	for key, value := range map[string]string{
		"10.1.42.1": "username=Administrator", "win.example.com": "username=-oProxyCommand=calc",
		"-oProxyCommand": "username=core", "10.0.0.1:2222": "username=a",
		"fe80::1%eth0": "username=a", "..": "username=..", "a": "username=../../Windows", "b": `username=..\..\x`,
		"c": "username=$(calc)", "d": "username=%TEMP%",
		"e": "username=a\nb", "f": "username=a\x00b", "g": "username=a\u202eb", "xn--pple-43d.com": "username=\u0430dmin",
		"h": "username=.", "i": "username=a/b", "j": "username=`id`",
	} {
		f.Add(key, value)
	}
	login := newKey(f)
	f.Fuzz(func(t *testing.T, key, value string) {
		entry, err := hostlist.ParseEntry(key, value)
		if err != nil {
			return
		}
		var dialed string
		dialer := &remote.Dialer{Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = address
			return nil, errors.New("refused")
		}}
		_, err = dialer.Connect(t.Context(), remote.Target{Address: entry.Address, User: entry.Username, Key: login})
		if host, port, splitErr := net.SplitHostPort(dialed); splitErr != nil || host != key || port != "22" ||
			strings.HasPrefix(host, "-") {
			t.Errorf("%q is dialed as %q", key, dialed)
		}
		fitForStatus(t, err)
		user := entry.Username
		if strings.HasPrefix(user, "-") || strings.ContainsAny(user, `/\:`) || strings.HasSuffix(user, ".") ||
			user != sanitize.Printable(user) {
			t.Errorf("user %q", user)
		}
	})
}

// user names that are valid on Windows but special in a shell or a path.
func TestUserName_NotInCommandLine(t *testing.T) {
	for _, user := range []string{"Administrator", "Jane Doe", "администратор", "$(calc)", "%USERNAME%", "`id`", "a'b",
		"a&calc", "!x!", "^", "~", "...x", "a b.c", "{0}"} {
		t.Run(user, func(t *testing.T) {
			if err := hostlist.ValidateUsername(user); err != nil {
				t.Fatal(err)
			}
			key := newKey(t)
			s := newServer(t, key)
			var seen atomic.Value
			s.config.PublicKeyCallback = func(meta ssh.ConnMetadata, _ ssh.PublicKey) (*ssh.Permissions, error) { // accepts every login to record the user name
				seen.Store(meta.User())
				return &ssh.Permissions{}, nil
			}
			s.agent = func(p *process) int {
				p.writeLines(helloLine(), resultLine())
				return 0
			}
			keys := "C:/Users/" + user + "/.ssh/authorized_keys"
			s.disk.writeFile(keys, "")
			target := s.newTarget(key)
			target.User = user
			c, err := (&remote.Dialer{}).Connect(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			if seen.Load() != user {
				t.Errorf("the host was told user %q", seen.Load())
			}
			if _, err := c.Run(t.Context(), agentPath, agentapi.Facts, nil, nil); err != nil {
				t.Error(err)
			}
			if want := fmt.Sprint([]string{agentPath + " facts"}); fmt.Sprint(s.ranCommands()) != want {
				t.Errorf("commands %q", s.ranCommands())
			}
			if err := remote.Authorize(t.Context(), c, key.Signer().PublicKey(), user); err != nil ||
				!strings.Contains(string(s.disk.readFile(keys)), key.AuthorizedKey()) {
				t.Errorf("the key is not where that user's keys are: %v", err)
			}
		})
	}
}
