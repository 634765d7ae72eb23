package winhost_test

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// processEndings returns the journal entries of processes that have ended.
func (l *lab) processEndings() []string {
	var endings []string
	for _, detail := range l.journalDetails(fake.KindProcess) {
		if !strings.HasPrefix(detail, "start ") && strings.Contains(detail, `C:\k\`) {
			endings = append(endings, detail)
		}
	}
	return endings
}

func TestFaults_Connection(t *testing.T) {
	silent := func(t *testing.T, l *lab) {
		t.Helper()
		conn, err := l.network.DialContext(t.Context(), "tcp", hostAddress+":22")
		requireNoError(t, err)
		defer func() { _ = conn.Close() }()
		requireNoError(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
		if n, err := conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read %d bytes, %v", n, err)
		}
	}
	works := func(t *testing.T, l *lab) {
		t.Helper()
		if out, _, _ := l.run("echo well"); !strings.HasSuffix(out, "well\r\n") {
			t.Errorf("after it was mended: %q", out)
		}
	}
	t.Run("refuse-connection", func(t *testing.T) {
		l := newLab(t)
		old := l.dialAdministrator()
		restore := l.host.Inject(winhost.RefuseConnection, winhost.Parameters{})
		_ = old.Wait() // the connection is cut
		if _, err := l.dialAs("Administrator", l.key); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
		restore()
		works(t, l)
	})
	t.Run("hang-before-banner", func(t *testing.T) {
		l := newLab(t)
		restore := l.host.Inject(winhost.HangBeforeBanner, winhost.Parameters{})
		silent(t, l)
		restore()
		works(t, l)
	})
	t.Run("hang-after-auth", func(t *testing.T) {
		l := newLab(t)
		restore := l.host.Inject(winhost.HangAfterAuth, winhost.Parameters{})
		client := l.dialAdministrator()
		answered := make(chan error, 1)
		go func() {
			_, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
			answered <- err
		}()
		select {
		case err := <-answered:
			t.Errorf("it answered: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		restore()
		if err := <-answered; err != nil {
			t.Errorf("after it was mended: %v", err)
		}
		works(t, l)
	})
	for _, fault := range []winhost.Fault{winhost.SlowBanner, winhost.SlowLogin, winhost.SlowSession} {
		t.Run(string(fault), func(t *testing.T) {
			l := newLab(t)
			restore := l.host.Inject(fault, winhost.Parameters{Duration: 30 * time.Millisecond})
			start := time.Now()
			l.run("echo slow")
			if elapsed := time.Since(start); elapsed < 30*time.Millisecond {
				t.Errorf("it took %v", elapsed)
			}
			restore()
			works(t, l)
		})
	}
	t.Run("cut-after-bytes", func(t *testing.T) {
		l := newLab(t)
		client := l.openSFTP()
		l.host.Inject(winhost.CutAfterBytes, winhost.Parameters{Bytes: 1 << 20})
		if err := uploadFile(client, "/C:/k/payload", randomBytes(2<<20)); err == nil {
			t.Error("the upload went through")
		}
		passed := func() int64 {
			received, sent := l.host.Traffic()
			return received + sent
		}
		l.awaitMachine("all that may pass has passed", func(*fake.Machine) bool { return passed() >= 1<<20 })
		l.awaitMachine("a part of the file stays", func(m *fake.Machine) bool {
			info, err := m.Drive().Stat(`C:\k\payload`)
			return err == nil && info.Size > 0 && info.Size < 1<<20
		})
		if total := passed(); total > 1<<20+1<<14 {
			t.Errorf("%d bytes passed", total)
		}
		requireNoError(t, uploadFile(l.openSFTP(), "/C:/k/payload", randomBytes(2<<20))) // cut once only
	})
	t.Run("slow-link", func(t *testing.T) {
		l := newLab(t)
		restore := l.host.Inject(winhost.SlowLink, winhost.Parameters{Latency: 30 * time.Millisecond})
		start := time.Now()
		l.run("echo slow")
		if elapsed := time.Since(start); elapsed < 100*time.Millisecond {
			t.Errorf("it took %v", elapsed)
		}
		restore()
		works(t, l)
	})
	t.Run("changed-host-key", func(t *testing.T) {
		l := newLab(t)
		before, err := l.host.HostKey()
		requireNoError(t, err)
		restore := l.host.Inject(winhost.ChangedHostKey, winhost.Parameters{})
		changed, err := l.host.HostKey()
		requireNoError(t, err)
		restore()
		after, err := l.host.HostKey()
		requireNoError(t, err)
		if b, c, a := ssh.FingerprintSHA256(before), ssh.FingerprintSHA256(changed), ssh.FingerprintSHA256(after); b == c || a != b {
			t.Errorf("%s, %s, %s", b, c, a)
		}
		works(t, l)
	})
	t.Run("reject-key", func(t *testing.T) {
		l := newLab(t)
		restore := l.host.Inject(winhost.RejectKey, winhost.Parameters{})
		if _, err := l.dialAs("Administrator", l.key); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
			t.Errorf("got %v", err)
		}
		restore()
		works(t, l)
	})
}

func TestFaults_Commands(t *testing.T) {
	start := func(t *testing.T, l *lab, line string) (lost error) {
		t.Helper()
		session, err := l.dialAdministrator().NewSession()
		requireNoError(t, err)
		stdout, err := session.StdoutPipe()
		requireNoError(t, err)
		requireNoError(t, session.Start(line))
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
		}
		return session.Wait()
	}
	var missing *ssh.ExitMissingError
	t.Run("verb-killed-with-session", func(t *testing.T) {
		l := newLab(t)
		l.host.Inject(winhost.VerbKilledWithSession, winhost.Parameters{Command: "apply", Bytes: 100})
		if err := start(t, l, `C:\k\work.exe apply`); !errors.As(err, &missing) {
			t.Errorf("got %v", err)
		}
		l.awaitMachine("the command is killed", func(*fake.Machine) bool {
			return len(l.processEndings()) == 1 && strings.HasPrefix(l.processEndings()[0], "killed")
		})
		if _, err := l.machine.Drive().Stat(`C:\k\done`); err == nil {
			t.Error("the command lived on")
		}
	})
	t.Run("verb-survives-session", func(t *testing.T) {
		l := newLab(t)
		l.host.Inject(winhost.VerbSurvivesSession, winhost.Parameters{Bytes: 100})
		if err := start(t, l, `C:\k\work.exe apply`); !errors.As(err, &missing) {
			t.Errorf("got %v", err)
		}
		l.awaitMachine("the command ends its work", func(m *fake.Machine) bool {
			_, err := m.Drive().Stat(`C:\k\done`)
			return err == nil
		})
	})
	t.Run("a command ends when its session is closed", func(t *testing.T) {
		l := newLab(t)
		client := l.dialAdministrator()
		session, err := client.NewSession()
		requireNoError(t, err)
		requireNoError(t, session.Start(`C:\k\wait.exe`))
		l.awaitMachine("it runs", func(m *fake.Machine) bool { return m.Journal().Count(fake.KindExec) == 1 })
		requireNoError(t, session.Close())
		l.awaitMachine("it is killed", func(*fake.Machine) bool { return len(l.processEndings()) == 1 })
	})
	t.Run("noise-before-output", func(t *testing.T) {
		l := newLab(t)
		restore := l.host.Inject(winhost.NoiseBeforeOutput, winhost.NoiseBeforeOutput.Example())
		out, _, _ := l.run(`C:\k\print.exe a`)
		if !strings.HasPrefix(out, "\xff\xfe") || !strings.HasSuffix(out, "\r\n[\"a\"]\n") {
			t.Errorf("got %q", out)
		}
		restore()
		if out, _, _ := l.run(`C:\k\print.exe a`); out != "[\"a\"]\n" {
			t.Errorf("after it was mended: %q", out)
		}
	})
	t.Run("agent-blocked", func(t *testing.T) {
		l := newLab(t)
		restore := l.host.Inject(winhost.AgentBlocked, winhost.Parameters{})
		if _, errs, code := l.run(agentPath + " facts"); errs != "Access is denied.\r\n" || code != 1 {
			t.Errorf("got %q, exit %d", errs, code)
		}
		if _, _, code := l.run(`C:\k\print.exe`); code != 0 {
			t.Errorf("another program: exit %d", code)
		}
		restore()
		if _, _, code := l.run(agentPath + " facts"); code != 0 {
			t.Errorf("after it was mended: exit %d", code)
		}
	})
	t.Run("powershell-default-shell and bash-default-shell", func(t *testing.T) {
		l := newLab(t)
		restore := l.host.Inject(winhost.PowerShellDefaultShell, winhost.Parameters{})
		if out, _, _ := l.run("echo %OS%"); out != "%OS%\r\n" {
			t.Errorf("PowerShell: %q", out)
		}
		restore()
		restore = l.host.Inject(winhost.BashDefaultShell, winhost.Parameters{})
		if out, _, _ := l.run("echo %OS%"); out != "%OS%\n" {
			t.Errorf("bash: %q", out)
		}
		restore()
		if out, _, _ := l.run("echo %OS%"); out != "Windows_NT\r\n" {
			t.Errorf("cmd: %q", out)
		}
	})
}

func TestFaults_Machine(t *testing.T) {
	t.Run("service-fails-to-start", func(t *testing.T) {
		l := newLab(t)
		services := l.machine.Host().Services
		restore := l.host.Inject(winhost.FailServiceStart, winhost.Parameters{Service: "W32Time", ExitCode: 5})
		if err := services.Start(t.Context(), "W32Time"); err == nil {
			t.Error("it starts")
		}
		restore()
		requireNoError(t, services.Start(t.Context(), "W32Time"))
	})
	t.Run("slow-boot", func(t *testing.T) {
		clock := clocktesting.NewFakeClock(time.Now())
		l := newLab(t, func(o *winhost.Options) { o.Clock = clock })
		l.machine.PowerOff()
		l.host.Inject(winhost.SlowBoot, winhost.Parameters{Duration: time.Minute})
		requireNoError(t, l.machine.Boot(t.Context()))
		clock.Step(59 * time.Second)
		if _, err := l.dialAs("Administrator", l.key); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("too early: %v", err)
		}
		clock.Step(time.Second)
		l.awaitMachine("it listens", func(*fake.Machine) bool { return len(l.journalDetails(winhost.KindSSHD)) == 3 })
		l.dialAdministrator()
	})
	t.Run("lingers-before-reboot", func(t *testing.T) {
		clock := clocktesting.NewFakeClock(time.Now())
		l := newLabOn(t, func(o *fake.Options) { o.Clock = clock })
		l.host.Inject(winhost.DelayShutdown, winhost.Parameters{Duration: time.Minute})
		before := l.machine.BootID()
		l.run(`C:\k\reboot.exe`)
		clock.Step(59 * time.Second)
		if out, _, code := l.run("echo well"); out != "well\r\n" || code != 0 || l.machine.BootID() != before {
			t.Errorf("before it goes down it answers %q, %d", out, code)
		}
		clock.Step(time.Second)
		l.awaitMachine("it has booted anew", func(m *fake.Machine) bool { return m.IsRunning() && m.BootID() != before })
	})
	t.Run("a firewall rule against SSH", func(t *testing.T) {
		l := newLab(t)
		rule := host.FirewallRule{Name: "block", DisplayName: "Block", Protocol: "TCP", LocalPort: 22, Enabled: true}
		requireNoError(t, l.machine.Host().Firewall.SetRule(t.Context(), rule))
		if _, err := l.dialAs("Administrator", l.key); err == nil {
			t.Error("the connection passed")
		}
	})
}

func TestFaults_EachCanBeInjectedAndCleared(t *testing.T) {
	for _, fault := range winhost.AllFaults() {
		t.Run(string(fault), func(t *testing.T) {
			l := newLab(t)
			if fault.Description() == "" {
				t.Error("it has no description")
			}
			if parsed, err := winhost.ParseFault(string(fault)); parsed != fault || err != nil {
				t.Errorf("its name is read as %q, %v", parsed, err)
			}
			restore := l.host.Inject(fault, fault.Example())
			restore()
			restore()
			if out, _, _ := l.run("echo well"); out != "well\r\n" {
				t.Errorf("after it was cleared: %q", out)
			}
		})
	}
	if _, err := winhost.ParseFault("none"); err == nil || !strings.Contains(err.Error(), "slow-boot") {
		t.Errorf("a wrong name: %v", err)
	}
}
