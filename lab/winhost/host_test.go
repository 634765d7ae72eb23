package winhost_test

import (
	"errors"
	"math/rand"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

func TestLogin(t *testing.T) {
	otherKey := newKey(t, 2)
	t.Run("a key that the administrators' file holds opens the host to every administrator", func(t *testing.T) {
		l := newLab(t, func(o *winhost.Options) {
			o.AuthorizedKeys["core"] = nil
			o.StandardUsers = []string{"guest"}
		})
		for _, user := range []string{"Administrator", "administrator", "core"} {
			if _, err := l.dialAs(user, l.key); err != nil {
				t.Errorf("%s: %v", user, err)
			}
		}
		for _, user := range []string{"guest", "nobody"} {
			if _, err := l.dialAs(user, l.key); err == nil {
				t.Errorf("%s logged in with the administrators' key", user)
			}
		}
	})
	t.Run("a key that is not authorized is refused", func(t *testing.T) {
		l := newLab(t)
		if _, err := l.dialAs("Administrator", otherKey); err == nil || !strings.Contains(err.Error(),
			"unable to authenticate") {
			t.Fatalf("got %v", err)
		}
		l.awaitMachine("the refusal is in the journal", func(*fake.Machine) bool {
			logins := l.journalDetails(winhost.KindLogin)
			return len(logins) == 1 && strings.Contains(logins[0], "failed from 127.0.0.1:")
		})
	})
	t.Run("the key files are read at each login", func(t *testing.T) {
		l := newLab(t)
		requireNoError(t, l.host.SetAuthorizedKeys("Administrator", otherKey.PublicKey()))
		if _, err := l.dialAs("Administrator", otherKey); err != nil {
			t.Error(err)
		}
		if _, err := l.dialAs("Administrator", l.key); err == nil {
			t.Error("the old key still opens the host")
		}
	})
	t.Run("keys that user data writes to the drive count", func(t *testing.T) {
		l := newLab(t, func(o *winhost.Options) { o.AuthorizedKeys = nil })
		if _, err := l.dialAs("Administrator", l.key); err == nil {
			t.Error("a host without keys let someone in")
		}
		l.writeFile(`C:\ProgramData\ssh\administrators_authorized_keys`,
			"# from user data\r\n"+string(ssh.MarshalAuthorizedKey(l.key.PublicKey())))
		if _, err := l.dialAs("Administrator", l.key); err != nil {
			t.Error(err)
		}
	})
}

func TestHostKey(t *testing.T) {
	shown := func(l *lab) string {
		var shown ssh.PublicKey
		conn, err := l.network.DialContext(t.Context(), "tcp", hostAddress+":22")
		requireNoError(t, err)
		defer func() { _ = conn.Close() }()
		_, _, _, err = ssh.NewClientConn(conn, hostAddress, &ssh.ClientConfig{HostKeyCallback: func(_ string, _ net.Addr,
			key ssh.PublicKey) error {
			shown = key
			return errors.New("seen enough")
		}})
		if shown == nil {
			t.Fatal(err)
		}
		return ssh.FingerprintSHA256(shown)
	}
	l := newLab(t)
	first := shown(l)
	if key, err := l.host.HostKey(); err != nil || ssh.FingerprintSHA256(key) != first {
		t.Errorf("HostKey is %v, %v", key, err)
	}
	t.Run("it stays over a reboot", func(t *testing.T) {
		l.machine.PowerOff()
		requireNoError(t, l.machine.Boot(t.Context()))
		if again := shown(l); again != first {
			t.Errorf("%s became %s", first, again)
		}
	})
	t.Run("it goes with the drive, as in a clone", func(t *testing.T) {
		data, err := l.machine.Drive().ReadFile(`C:\ProgramData\ssh\ssh_host_ed25519_key`)
		requireNoError(t, err)
		clone := newLab(t, func(o *winhost.Options) {
			o.Rand = rand.New(rand.NewSource(8))
			requireNoError(t, o.Machine.Drive().WriteFile(`C:\ProgramData\ssh\ssh_host_ed25519_key`, data))
		})
		if shown(clone) != first {
			t.Error("the clone shows another key")
		}
	})
	t.Run("a drive without one gets a new one", func(t *testing.T) {
		l.machine.PowerOff()
		requireNoError(t, l.machine.Drive().Remove(`C:\ProgramData\ssh\ssh_host_ed25519_key`))
		requireNoError(t, l.machine.Boot(t.Context()))
		if shown(l) == first {
			t.Error("the key came back")
		}
	})
}

func TestLimits(t *testing.T) {
	l := newLab(t)
	client := l.dialAdministrator()
	t.Run("keepalives are answered", func(t *testing.T) {
		if ok, _, err := client.SendRequest("keepalive@openssh.com", true, nil); ok || err != nil {
			t.Errorf("got %v, %v; OpenSSH answers with a failure", ok, err)
		}
	})
	t.Run("a connection has at most ten sessions", func(t *testing.T) {
		for i := range 10 {
			if _, err := client.NewSession(); err != nil {
				t.Fatalf("session %d: %v", i+1, err)
			}
		}
		var refused *ssh.OpenChannelError
		if _, err := client.NewSession(); !errors.As(err, &refused) || refused.Reason != ssh.ConnectionFailed {
			t.Errorf("the eleventh: %v", err)
		}
	})
	t.Run("terminals, forwarding and environment variables are refused", func(t *testing.T) {
		session, err := l.dialAdministrator().NewSession()
		requireNoError(t, err)
		if session.RequestPty("xterm", 24, 80, nil) == nil || session.Setenv("A", "b") == nil || session.Shell() == nil {
			t.Error("something was granted")
		}
		if _, err := client.Dial("tcp", "10.0.0.1:80"); err == nil {
			t.Error("forwarding was granted")
		}
	})
	t.Run("connections past MaxStartups are dropped", func(t *testing.T) {
		l := newLab(t, func(o *winhost.Options) { o.MaxStartups = winhost.MaxStartups{Begin: 2, RatePercent: 100, Full: 3} })
		for range 2 {
			conn, err := l.network.DialContext(t.Context(), "tcp", hostAddress+":22")
			requireNoError(t, err)
			banner := make([]byte, 8)
			_, err = conn.Read(banner) // being served now
			requireNoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
		}
		if _, err := l.dialAs("Administrator", l.key); err == nil {
			t.Error("the third was served")
		}
	})
}

func TestReboot(t *testing.T) {
	l := newLab(t)
	client := l.dialAdministrator()
	session, err := client.NewSession()
	requireNoError(t, err)
	boot := l.machine.BootID()
	output, err := session.Output(`C:\k\reboot.exe`)
	if string(output) != "rebooting\n" || err == nil {
		t.Errorf("got %q, %v; the connection should be lost behind the last line", output, err)
	}
	_ = client.Wait() // the connection is cut
	l.awaitMachine("the host listens again", func(m *fake.Machine) bool {
		return m.BootID() != boot && len(l.journalDetails(winhost.KindSSHD)) == 3
	})
	if out, _, _ := l.run("echo back"); out != "back\r\n" {
		t.Errorf("after the reboot: %q", out)
	}
	t.Run("a host that is off refuses connections", func(t *testing.T) {
		l.machine.PowerOff()
		if _, err := l.dialAs("Administrator", l.key); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
	})
}

func TestJournal(t *testing.T) {
	l := newLab(t)
	l.run(`C:\k\print.exe ` + strings.Repeat("x", 2000))
	l.awaitMachine("the connection has ended", func(m *fake.Machine) bool {
		return m.Journal().Bytes(fake.KindReceived) > 3000
	})
	received, sent := l.host.Traffic()
	journal := l.machine.Journal()
	for kind, want := range map[fake.Kind]int{
		fake.KindConnection: 1, winhost.KindCommand: 1, fake.KindExec: 1, fake.KindSFTP: 0, winhost.KindForbidden: 0,
	} {
		if got := journal.Count(kind); got != want {
			t.Errorf("%s: %d entries, want %d", kind, got, want)
		}
	}
	if received < 3000 || sent < 3000 {
		t.Errorf("counted %d bytes in and %d out", received, sent)
	}
	l.awaitMachine("the journal has all bytes", func(*fake.Machine) bool {
		received, sent := l.host.Traffic()
		return journal.Bytes(fake.KindReceived) == received && journal.Bytes(fake.KindSent) == sent
	})
	if want := "C:\\k\\print.exe " + strings.Repeat("x", 2000); l.journalDetails(winhost.KindCommand)[0] != want {
		t.Errorf("the command is %q", l.journalDetails(winhost.KindCommand))
	}
}

func TestSSHServer_InstalledLaterAcceptsKey(t *testing.T) {
	l := newLab(t, func(o *winhost.Options) {
		o.AuthorizedKeys, o.Administrators, o.NotInstalled = nil, []string{"capi"}, true
	})
	if _, err := l.dialAs("capi", l.key); err == nil {
		t.Fatal("it lets somebody in before it is installed")
	}
	requireNoError(t, l.host.AuthorizeKey("capi", l.key.PublicKey()))
	requireNoError(t, l.host.AuthorizeKey("capi", l.key.PublicKey()))
	l.host.Install()
	t.Run("it accepts the key then, for all administrators", func(t *testing.T) {
		for _, user := range []string{"capi", "Administrator"} {
			if _, err := l.dialAs(user, l.key); err != nil {
				t.Errorf("%s: %v", user, err)
			}
		}
	})
	t.Run("the key is in the file once", func(t *testing.T) {
		data, err := l.machine.Drive().ReadFile(`C:\ProgramData\ssh\administrators_authorized_keys`)
		if err != nil || strings.Count(string(data), "ssh-ed25519") != 1 {
			t.Errorf("the file is %q, %v", data, err)
		}
	})
	t.Run("a key that is appended over SFTP is accepted", func(t *testing.T) {
		other := newKey(t, 9)
		client, err := sftp.NewClient(l.dialAdministrator())
		requireNoError(t, err)
		file, err := client.OpenFile("/C:/ProgramData/ssh/administrators_authorized_keys", os.O_WRONLY|os.O_APPEND)
		requireNoError(t, err)
		_, err = file.Write(ssh.MarshalAuthorizedKey(other.PublicKey()))
		requireNoError(t, errors.Join(err, file.Close()))
		for _, key := range []ssh.Signer{l.key, other} {
			if _, err := l.dialAs("capi", key); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("it is there after a reboot", func(t *testing.T) {
		requireNoError(t, l.machine.Host().Power.Reboot(t.Context(), "a test wants it"))
		l.awaitMachine("it listens again", func(*fake.Machine) bool {
			return strings.Count(strings.Join(l.journalDetails(winhost.KindSSHD), "\n"), "listens on") == 2
		})
		if _, err := l.dialAs("capi", l.key); err != nil {
			t.Error(err)
		}
	})
}

// The optional feature of Windows has the start type Manual.
func TestSSHServer_ManualStartDoesNotSurviveRestart(t *testing.T) {
	l := newLabOn(t, func(o *fake.Options) { o.SSHStart = host.StartManual })
	client, err := l.dialAs("Administrator", l.key)
	requireNoError(t, err)
	requireNoError(t, client.Close())
	l.machine.PowerOff()
	requireNoError(t, l.machine.Boot(t.Context()))
	if client, err := l.dialAs("Administrator", l.key); err == nil {
		_ = client.Close()
		t.Error("it answers")
	}
}
