package fake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestExec(t *testing.T) {
	t.Run("a program gets its arguments and environment and gives output and exit code", func(t *testing.T) {
		r := bootMachine(t, programs{"echo": func(_ context.Context, p *Process) int {
			_, _ = io.WriteString(p.Stdout, strings.Join(p.Args, ",")+p.Environ["EXTRA"]+p.Environ["windir"])
			return 3
		}})
		var out bytes.Buffer
		code, err := r.Exec(r.ctx, ExecRequest{
			Path: `c:\ECHO`, Args: []string{"a b", "c"}, Stdout: &out, Environ: map[string]string{"EXTRA": "+", "WINDIR": `C:\own`},
		})
		r.requireNoError(err)
		if code != 3 || out.String() != `a b,c+C:\own` {
			t.Errorf("code %d, output %q", code, &out)
		}
	})
	t.Run("a file that is no program is refused in Windows' words", func(t *testing.T) {
		r := bootMachine(t, programs{})
		r.write(`C:\damaged.exe`, "half of it")
		_, err := r.Exec(r.ctx, ExecRequest{Path: `C:\damaged.exe`})
		r.requireError(err, ErrNotExecutable)
		_, err = r.Exec(r.ctx, ExecRequest{Path: `C:\none.exe`})
		r.requireError(err, host.ErrNotExist)
	})
	t.Run("a tool of Windows fails loudly", func(t *testing.T) {
		r := bootMachine(t, nil)
		var out bytes.Buffer
		code, err := r.Exec(r.ctx, ExecRequest{Path: "netsh", Stderr: &out})
		r.requireNoError(err)
		if code == 0 || out.Len() == 0 {
			t.Errorf("code %d, output %q", code, &out)
		}
	})
	t.Run("a program runs through a link, and from the file that the link leads to", func(t *testing.T) {
		r := bootMachine(t, programs{"idle": runIdle})
		r.requireNoError(r.Tree.Symlink(r.ctx, `C:\idle.exe`, `C:\link.exe`))
		r.installService("s", "link")
		r.requireNoError(r.Services.Start(r.ctx, "s"))
		r.requireError(r.Files.Remove(r.ctx, `C:\idle.exe`), host.ErrInUse)
		r.requireNoError(r.Files.Remove(r.ctx, `C:\link.exe`))
	})
}

func TestKilledProcess(t *testing.T) {
	t.Run("nothing that it does has an effect", func(t *testing.T) {
		r := bootMachine(t, nil)
		var out bytes.Buffer
		p := r.startIdleProcess(&out)
		before := r.Snapshot()
		p.Kill()

		h := p.Host
		_, serveErr := p.Spawn(`C:\held.exe`)
		_, writeErr := p.Stdout.Write([]byte("x"))
		for what, err := range map[string]error{
			"write":    h.Files.Write(r.ctx, `C:\file`, strings.NewReader("x"), host.WriteOptions{}),
			"folder":   h.Tree.MakeDirectory(r.ctx, `C:\folder`, ""),
			"start":    h.Services.Start(r.ctx, "W32Time"),
			"rule":     h.Firewall.DeleteRule(r.ctx, "MDNS-In-UDP"),
			"variable": h.Environment.Unset(r.ctx, "OS"),
			"reboot":   h.Power.Reboot(r.ctx, "x"),
			"serve":    p.ServeLocal(1, nil),
			"spawn":    serveErr,
			"output":   writeErr,
		} {
			if !errors.Is(err, ErrProcessEnded) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if after := r.Snapshot(); len(after.Files) != len(before.Files) || out.Len() != 0 || !r.IsRunning() {
			t.Errorf("it had an effect: %d files, %q", len(after.Files), &out)
		}
	})
	t.Run("a kill in the middle of a write leaves the old content and a draft that the next write takes over", func(t *testing.T) {
		r := bootMachine(t, nil)
		r.write(`C:\file`, "old")
		p := r.startIdleProcess(nil)
		content := io.MultiReader(strings.NewReader("new"), readerFunc(func([]byte) (int, error) { p.Kill(); return 0, io.EOF }))
		r.requireError(p.Host.Files.Write(r.ctx, `C:\file`, content, host.WriteOptions{}), ErrProcessEnded)
		if got := r.read(`C:\file`); got != "old" {
			t.Errorf("content %q", got)
		}
		if got := r.read(`C:\file` + draftSuffix); got != "new" {
			t.Errorf("draft %q", got)
		}
		r.write(`C:\file`, "newer")
		if _, err := r.Drive().Stat(`C:\file` + draftSuffix); !errors.Is(err, host.ErrNotExist) {
			t.Errorf("the draft: %v", err)
		}
	})
	t.Run("a canceled exec is killed, though its program does not look", func(t *testing.T) {
		free := make(chan struct{})
		r := bootMachine(t, programs{"deaf": func(context.Context, *Process) int { <-free; return 0 }})
		t.Cleanup(func() { close(free) })
		ctx, cancel := context.WithCancel(r.ctx)
		ended := make(chan error, 1)
		go func() {
			_, err := r.Exec(ctx, ExecRequest{Path: `C:\deaf.exe`})
			ended <- err
		}()
		r.awaitCondition(func() bool { return r.Journal().Count(KindExec) == 1 && r.hasProcess(`C:\deaf.exe`) })
		cancel()
		r.requireError(<-ended, ErrProcessEnded)
		r.requireNoError(r.Files.Remove(r.ctx, `C:\deaf.exe`))
	})
	t.Run("a process that is killed while it waits for a service stops waiting", func(t *testing.T) {
		free := make(chan struct{})
		r := bootMachine(t, programs{"deaf": func(context.Context, *Process) int { <-free; return 0 }})
		t.Cleanup(func() { close(free) })
		r.installService("deaf", "deaf")
		r.requireNoError(r.Services.Start(r.ctx, "deaf"))
		p := r.startIdleProcess(nil)
		ended := make(chan error, 1)
		go func() { ended <- p.Host.Services.Stop(r.ctx, "deaf") }()
		r.waitState("deaf", host.ServiceStopPending)
		p.Kill()
		r.requireError(<-ended, ErrProcessEnded)
	})
	t.Run("its child lives on and keeps its executable in use", func(t *testing.T) {
		r := bootMachine(t, nil)
		p := r.startIdleProcess(nil)
		r.write(`C:\shim.exe`, "shim")
		child, err := p.Spawn(`C:\shim.exe`)
		r.requireNoError(err)
		p.Kill()
		if !child.Alive() || child.Parent != p.PID || !r.hasProcess(`C:\shim.exe`) {
			t.Error("the child is gone")
		}
		r.requireError(r.Files.Remove(r.ctx, `C:\shim.exe`), host.ErrInUse)
		r.requireNoError(r.Processes.Kill(r.ctx, child.PID))
		r.requireNoError(r.Files.Remove(r.ctx, `C:\shim.exe`))
	})
	t.Run("what it served is gone", func(t *testing.T) {
		r := bootMachine(t, nil)
		p := r.startIdleProcess(nil)
		r.requireNoError(p.ServeLocal(10248, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, q.URL.Path+strings.Repeat("x", 2000))
		})))
		r.requireNoError(p.ServeRuntime("npipe://./pipe/c", func() host.RuntimeStatus { return host.RuntimeStatus{Name: "containerd", Ready: true} }))
		if err := p.ServeLocal(10248, nil); err == nil {
			t.Error("a port was taken twice")
		}
		status, body, err := r.Probes.HTTPGet(r.ctx, "http://127.0.0.1:10248/healthz", nil)
		r.requireNoError(err)
		if status != http.StatusTeapot || !strings.HasPrefix(body, "/healthz") || len(body) != 1024 {
			t.Errorf("%d %q", status, body)
		}
		runtime, err := r.Probes.ContainerRuntime(r.ctx, "npipe://./pipe/c")
		r.requireNoError(err)
		if !runtime.Ready {
			t.Errorf("%+v", runtime)
		}
		p.Kill()
		if _, _, err := r.Probes.HTTPGet(r.ctx, "http://127.0.0.1:10248/healthz", nil); err == nil {
			t.Error("the port still answers")
		}
		if _, err := r.Probes.ContainerRuntime(r.ctx, "npipe://./pipe/c"); err == nil {
			t.Error("the pipe still answers")
		}
	})
	t.Run("a part of Windows cannot be killed", func(t *testing.T) {
		r := bootMachine(t, nil)
		if r.Processes.Kill(r.ctx, 4) == nil || !r.hasProcess(`C:\Windows\System32\lsass.exe`) {
			t.Error("it was killed")
		}
	})
}

func (r *rig) hasProcess(path string) bool {
	for _, p := range r.RunningProcesses() {
		if p.Path == path {
			return true
		}
	}
	return false
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
