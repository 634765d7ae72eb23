package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/remote"
)

const agentPath = `C:\k\wicd\0123456789ab\wicd.exe`

// writeLines writes lines of the agent.
func (p *process) writeLines(lines ...agentapi.Line) {
	for _, line := range lines {
		data, err := line.Encode()
		if err != nil {
			p.server.t.Error(err)
		}
		_, _ = p.out.Write(append(data, '\n'))
	}
}

func helloLine() agentapi.Line {
	return agentapi.Line{Type: agentapi.TypeHello, Hello: &agentapi.Hello{Version: "1.0", Command: agentapi.Apply, BootID: "boot-1", PID: 7}}
}

func stepLine(name string) agentapi.Line {
	return agentapi.Line{Type: agentapi.TypeStep, Step: &agentapi.Step{Name: name, Index: 1, Of: 1, State: agentapi.StepDone}}
}

func resultLine() agentapi.Line {
	return agentapi.Line{Type: agentapi.TypeResult,
		Result: &agentapi.Result{Facts: &plan.Facts{System: host.SystemInfo{HostName: "win-1"}}}}
}

// run runs an agent command and returns its last line and the types of all lines.
func run(t *testing.T, c *remote.Connection) (agentapi.Line, []agentapi.Type, error) {
	t.Helper()
	var types []agentapi.Type
	line, err := c.Run(t.Context(), agentPath, agentapi.Apply, []string{"--spec", `C:\k\spec.json`}, func(l agentapi.Line) {
		types = append(types, l.Type)
	})
	return line, types, err
}

// hostWith returns a connection to a host with the given agent.
func hostWith(t *testing.T, agent func(p *process) int, configure ...func(*server)) (*server, *remote.Connection) {
	t.Helper()
	key := newKey(t)
	s := newServer(t, key)
	s.agent = agent
	for _, f := range configure {
		f(s)
	}
	return s, s.mustConnect(&remote.Dialer{}, key)
}

// R-069, L-20
func TestRun_ReturnsResultDespiteNoise(t *testing.T) {
	big := resultLine()
	big.Result.Facts.Files = map[string]plan.FileFact{}
	for i := range 2000 {
		big.Result.Facts.Files[fmt.Sprintf(`C:\k\file-%d`, i)] = plan.FileFact{SHA256: strings.Repeat("ab", 32)}
	}
	encoded := func(line agentapi.Line) string {
		data, err := line.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, agent := range map[string]func(p *process) int{
		"in plain lines": func(p *process) int {
			p.writeLines(helloLine(), stepLine("a"), resultLine())
			return 0
		},
		"with an exit code that means nothing": func(p *process) int {
			p.writeLines(helloLine(), stepLine("a"), resultLine())
			return 3
		},
		"after noise of AutoRun and profiles": func(p *process) int {
			_, _ = io.WriteString(p.out, "Welcome to WIN-1\r\n{\"json\": \"but not ours\"}\r\n{\"wicd\":\"v0\"}\r\n\r\n\xff\xfe\r\n")
			_, _ = io.WriteString(p.err, "The profile could not be loaded.\r\n")
			p.writeLines(helloLine(), stepLine("a"), resultLine())
			return 0
		},
		"with Windows' line ends and noise in between": func(p *process) int {
			_, _ = io.WriteString(p.out, encoded(helloLine())+"\r\n\r\nwarning\r\n"+encoded(stepLine("a"))+"\r\n"+encoded(resultLine())+"\r\n")
			return 0
		},
		"after a terminal sequence on the same line": func(p *process) int {
			_, _ = io.WriteString(p.out, "\x1b[?1h\xef\xbb\xbf"+encoded(helloLine())+"\n")
			p.writeLines(stepLine("a"), resultLine())
			return 0
		},
		"without the last newline": func(p *process) int {
			p.writeLines(helloLine(), stepLine("a"))
			_, _ = io.WriteString(p.out, encoded(resultLine()))
			return 0
		},
		"with facts of several hundred KiB": func(p *process) int {
			p.writeLines(helloLine(), stepLine("a"), big)
			return 0
		},
		"with output after the result": func(p *process) int {
			p.writeLines(helloLine(), stepLine("a"), resultLine())
			_, _ = io.WriteString(p.out, strings.Repeat("bye\n", 1_000_000))
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			s, c := hostWith(t, agent)
			line, types, err := run(t, c)
			if err != nil {
				t.Fatal(err)
			}
			if line.Result.Facts.System.HostName != "win-1" || fmt.Sprint(types) != "[hello step result]" {
				t.Errorf("%v, %+v", types, line)
			}
			if want := agentPath + ` apply --spec C:\k\spec.json`; fmt.Sprint(s.ranCommands()) != fmt.Sprint([]string{want}) {
				t.Errorf("commands %q", s.ranCommands())
			}
		})
	}
	t.Run("on one connection, one after another and at the same time", func(t *testing.T) {
		noLeaks(t)
		s, c := hostWith(t, func(p *process) int {
			p.writeLines(helloLine(), resultLine())
			return 0
		})
		var waits []func() error
		for range 5 {
			waits = append(waits, inBackground(func() error {
				_, err := c.Run(t.Context(), agentPath, agentapi.Facts, nil, nil)
				return err
			}))
		}
		for _, wait := range waits {
			if err := wait(); err != nil {
				t.Error(err)
			}
		}
		if s.connections.Load() != 1 {
			t.Errorf("%d connections", s.connections.Load())
		}
	})
}

func TestRun_FailureNamesCause(t *testing.T) {
	t.Run("a failure of the agent keeps its reason", func(t *testing.T) {
		_, c := hostWith(t, func(p *process) int {
			p.writeLines(helloLine(), agentapi.Line{Type: agentapi.TypeFailure, Failure: &agentapi.Failure{Reason: agentapi.ReasonServiceFailed,
				Step: "start kubelet", Message: "it stopped\x07"}})
			return 1
		})
		line, _, err := run(t, c)
		expectError(t, err, remote.Reason(agentapi.ReasonServiceFailed), "start kubelet: it stopped")
		var failure *agentapi.Failure
		if !errors.As(err, &failure) || line.Type != agentapi.TypeFailure {
			t.Errorf("%T, %v", err, line.Type)
		}
	})
	t.Run("a command line with a shell's characters is not sent", func(t *testing.T) {
		s, c := hostWith(t, nil)
		if _, err := c.Run(t.Context(), agentPath, agentapi.Apply, []string{"--spec", "x & calc"}, nil); err == nil {
			t.Error("it was accepted")
		}
		if len(s.ranCommands()) != 0 {
			t.Errorf("commands %q", s.ranCommands())
		}
	})
	t.Run("an agent that ends early is quoted", func(t *testing.T) {
		_, c := hostWith(t, func(p *process) int {
			p.writeLines(helloLine(), stepLine("a"))
			_, _ = io.WriteString(p.err, strings.Repeat("goroutine 1\n", 10000)+"panic: \x1b[31mout of memory\n")
			return 2
		})
		_, types, err := run(t, c)
		expectError(t, err, remote.ReasonAgentExited, "without a result", "exit code 2", "out of memory")
		if len(err.Error()) > 2000 || strings.Contains(err.Error(), "\x1b") || len(types) != 2 {
			t.Errorf("%v: %q", types, err)
		}
	})
	t.Run("a line without end is not swallowed", func(t *testing.T) {
		noLeaks(t)
		_, c := hostWith(t, func(p *process) int {
			p.writeLines(helloLine())
			for range 20 {
				_, _ = io.WriteString(p.out, strings.Repeat("x", 1<<20))
			}
			return 0
		})
		_, _, err := run(t, c)
		expectError(t, err, remote.ReasonAgentExited, "longer than 2 MiB")
	})
	t.Run("a connection that is cut in the middle of a line", func(t *testing.T) {
		noLeaks(t)
		_, c := hostWith(t, func(p *process) int {
			p.writeLines(helloLine(), stepLine("a"))
			_, _ = io.WriteString(p.out, `{"wicd":"v1","type":"res`)
			_ = p.conn.Close()
			return 0
		})
		_, _, err := run(t, c)
		expectError(t, err, remote.ReasonConnectionLost)
	})
	t.Run("a server that opens no session", func(t *testing.T) {
		_, c := hostWith(t, nil, func(s *server) { s.refuse = "sessions" })
		_, _, err := run(t, c)
		expectError(t, err, remote.ReasonSessionRejected, "too many sessions", "MaxSessions")
	})
}

func TestRun_RebootEndsConnection(t *testing.T) {
	reboot := func(p *process) {
		p.writeLines(helloLine(), agentapi.Line{Type: agentapi.TypeRebooting, Result: &agentapi.Result{}})
	}
	t.Run("and drops the connection", func(t *testing.T) {
		noLeaks(t)
		_, c := hostWith(t, func(p *process) int {
			reboot(p)
			_ = p.conn.Close()
			return 0
		})
		line, _, err := run(t, c)
		if err != nil || line.Type != agentapi.TypeRebooting {
			t.Errorf("%v, %v", line.Type, err)
		}
		<-c.Done()
	})
	t.Run("and ends the session first", func(t *testing.T) {
		noLeaks(t)
		_, c := hostWith(t, func(p *process) int {
			reboot(p)
			return 0
		})
		line, _, err := run(t, c)
		if err != nil || line.Type != agentapi.TypeRebooting {
			t.Errorf("%v, %v", line.Type, err)
		}
		// A connection to a host that shuts down is useless.
		<-c.Done()
	})
	t.Run("and leaves the connection hanging", func(t *testing.T) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		s.agent = func(p *process) int {
			reboot(p)
			s.hangRequest("reboot", p.closed)
			return 0
		}
		d, clock := fakeDialer()
		c := s.mustConnect(d, key)
		wait := inBackground(func() error {
			_, err := c.Run(t.Context(), agentPath, agentapi.Apply, nil, nil)
			return err
		})
		clock.passTimer(rebootTimeout)
		if err := wait(); err != nil {
			t.Error(err)
		}
		<-c.Done()
	})
}

// unresponsiveConn discards received data while on is true.
type unresponsiveConn struct {
	net.Conn
	on atomic.Bool
}

func (c *unresponsiveConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.on.Load() {
			return n, err
		}
	}
}

// the error of a host that hangs contains the awaited event and appears within the limit of the step.
func TestRun_HangingHostTimesOut(t *testing.T) {
	prepare := func(t *testing.T, deafTo string, agent func(p *process) int, configure ...func(*server)) (*server, *remote.Connection, *testClock) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		for _, f := range configure {
			f(s)
		}
		s.deafTo, s.agent = deafTo, agent
		d, clock := fakeDialer()
		return s, s.mustConnect(d, key), clock
	}
	start := func(ctx context.Context, c *remote.Connection) func() error {
		return inBackground(func() error {
			_, err := c.Run(ctx, agentPath, agentapi.Apply, nil, nil)
			return err
		})
	}
	t.Run("and opens no session", func(t *testing.T) {
		s, c, clock := prepare(t, "sessions", nil)
		wait := start(t.Context(), c)
		<-s.hung
		clock.passTimer(execStartTimeout)
		expectTimeout(t, wait(), remote.ReasonConnectionTimedOut, "the SSH server to open a session")
		<-c.Done()
	})
	t.Run("and starts no program", func(t *testing.T) {
		s, c, clock := prepare(t, "programs", nil)
		wait := start(t.Context(), c)
		clock.awaitTimer(execStartTimeout) // timer of the session
		<-s.hung
		clock.passTimer(execStartTimeout)
		expectTimeout(t, wait(), remote.ReasonConnectionTimedOut, "the SSH server to start a program")
	})
	t.Run("and the agent never begins", func(t *testing.T) {
		s, c, clock := prepare(t, "", func(p *process) int {
			p.server.hangRequest("agent", p.closed)
			return 0
		})
		wait := start(t.Context(), c)
		<-s.hung
		clock.passTimer(helloTimeout)
		expectTimeout(t, wait(), remote.ReasonAgentTimedOut, "the first line of agent command apply")
	})
	t.Run("and the agent falls silent", func(t *testing.T) {
		s, c, clock := prepare(t, "", func(p *process) int {
			p.writeLines(helloLine(), stepLine("a"))
			p.server.hangRequest("agent", p.closed)
			return 0
		})
		read := make(chan agentapi.Line, 10)
		wait := inBackground(func() error {
			_, err := c.Run(t.Context(), agentPath, agentapi.Apply, nil, func(line agentapi.Line) { read <- line })
			return err
		})
		<-s.hung
		for line := range read { // including the last one, before the clock steps: the limit starts at the read
			if line.Type == stepLine("a").Type {
				break
			}
		}
		clock.passTimer(silenceTimeout)
		expectTimeout(t, wait(), remote.ReasonAgentTimedOut, "the next line of agent command apply")
	})
	t.Run("until the operator stops: the session is closed", func(t *testing.T) {
		s, c, clock := prepare(t, "", func(p *process) int {
			p.writeLines(helloLine())
			p.server.hangRequest("agent", p.closed)
			return 0
		})
		ctx, cancel := context.WithCancel(t.Context())
		wait := start(ctx, c)
		clock.awaitTimer(silenceTimeout) // the agent's first line was read
		<-s.hung
		cancel()
		expectCanceled(t, wait())
		if _, err := c.Exists(t.Context(), `C:\k`); err != nil {
			t.Errorf("the connection is of no use any more: %v", err)
		}
	})
	t.Run("until the operator stops, and does not even close the session", func(t *testing.T) {
		var unresponsive *unresponsiveConn
		s, c, clock := prepare(t, "", func(p *process) int {
			unresponsive.on.Store(true)
			p.writeLines(helloLine())
			p.server.hangRequest("agent", nil)
			return 0
		}, func(s *server) {
			s.wrap = func(conn net.Conn) net.Conn {
				unresponsive = &unresponsiveConn{Conn: conn}
				return unresponsive
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		wait := start(ctx, c)
		clock.awaitTimer(silenceTimeout)
		<-s.hung
		cancel()
		clock.passTimer(endTimeout)
		expectCanceled(t, wait())
		<-c.Done()
	})
	t.Run("until the operator stops, while no program starts", func(t *testing.T) {
		s, c, _ := prepare(t, "programs", nil)
		ctx, cancel := context.WithCancel(t.Context())
		wait := start(ctx, c)
		<-s.hung
		cancel()
		expectCanceled(t, wait())
		if _, err := c.Exists(t.Context(), `C:\k`); err != nil {
			t.Errorf("the connection is of no use any more: %v", err)
		}
	})
	t.Run("but an agent that lives on after its result is no fault", func(t *testing.T) {
		s, c, clock := prepare(t, "", func(p *process) int {
			p.writeLines(helloLine(), resultLine())
			p.server.hangRequest("agent", p.closed)
			return 0
		})
		wait := start(t.Context(), c)
		<-s.hung
		clock.passTimer(endTimeout)
		if err := wait(); err != nil {
			t.Error(err)
		}
		if c.Err() != nil {
			t.Errorf("the connection is gone: %v", c.Err())
		}
	})
}

// R-069, L-20: one command identifies the shell, and only if the agent does not answer.
func TestRun_FailedAgentStartNamesCause(t *testing.T) {
	notFound := func(p *process) int {
		_, _ = io.WriteString(p.err,
			"'"+p.args[0]+"' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n")
		return 1
	}
	for name, c := range map[string]struct {
		shell  string
		agent  func(p *process) int
		exists bool
		reason remote.Reason
		texts  []string
	}{
		"in a foreign shell": {"bash", notFound, true, remote.ReasonShellUnsupported,
			[]string{"neither cmd.exe nor PowerShell", "(response to \"echo %OS% $PSHOME\": %OS%", `HKLM:\SOFTWARE\OpenSSH`, "Restart-Service sshd"}},
		"where the shell itself does not start": {"broken", nil, true, remote.ReasonSessionRejected, []string{"DefaultShell"}},
		"in a shell that says nothing": {"mute", notFound, true, remote.ReasonShellUnsupported,
			[]string{"(response to \"echo %OS% $PSHOME\": nothing)"}},
		"in cmd.exe, though it is there": {"cmd", notFound, true, remote.ReasonAgentStartFailed,
			[]string{"exit code 1", "is not recognized"}},
		"in PowerShell, though it is there": {"powershell", notFound, true, remote.ReasonAgentStartFailed,
			[]string{agentPath}},
		"because something deleted it": {"cmd", notFound, false, remote.ReasonAgentBlocked,
			[]string{"no longer on the host", "antivirus"}},
		"because a policy forbids it": {"cmd", func(p *process) int {
			_, _ = io.WriteString(p.err, "This program is blocked by group policy.\r\n")
			return 1
		}, true, remote.ReasonAgentBlocked, []string{"blocked by group policy", "AppLocker"}},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			s, conn := hostWith(t, c.agent, func(s *server) {
				s.shell = c.shell
				if c.exists {
					s.disk.writeFile("C:/k/wicd/0123456789ab/wicd.exe", "MZ")
				}
			})
			_, _, err := run(t, conn)
			expectError(t, err, c.reason, c.texts...)
			if ran := s.ranCommands(); len(ran) > 2 {
				t.Errorf("commands %q", ran)
			}
		})
	}
	t.Run("because the connection was cut", func(t *testing.T) {
		s, c := hostWith(t, func(p *process) int {
			_ = p.conn.Close()
			return 0
		})
		_, _, err := run(t, c)
		expectError(t, err, remote.ReasonConnectionLost)
		if len(s.ranCommands()) != 1 {
			t.Errorf("commands %q", s.ranCommands())
		}
	})
}
