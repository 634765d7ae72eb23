package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start("the script", exec.Command("sh", "-c", script), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestProcess(t *testing.T) {
	t.Run("a failure has the end of the log, without lines that only inform", func(t *testing.T) {
		p := start(t, "echo I0102 15:04:05.000000 fine; echo broken >&2; exit 3")
		<-p.Done()
		err := p.Failure().Error()
		if !strings.Contains(err, "the script ended (exit status 3)") || !strings.HasSuffix(err, "broken\n") || strings.Contains(err, "fine") {
			t.Errorf("got %q", err)
		}
	})
	t.Run("an end without a failure has a reason, too", func(t *testing.T) {
		p := start(t, "exit 0")
		<-p.Done()
		if err := p.Err(); err == nil || err.Error() != "exit status 0" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a process can be asked to end", func(t *testing.T) {
		ready := filepath.Join(t.TempDir(), "ready")
		p := start(t, "trap 'echo bye; exit 4' TERM; touch "+ready+"; while :; do sleep 0.01; done")
		err := p.WaitFor(t.Context(), func() (bool, error) { _, err := os.Stat(ready); return err == nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		if p.Stop(); !strings.Contains(p.Failure().Error(), "exit status 4") || !strings.Contains(p.Failure().Error(), "bye") {
			t.Error(p.Failure())
		}
	})
	t.Run("a wait ends with the process, with the context, and with an error of the condition", func(t *testing.T) {
		never := func() (bool, error) { return false, nil }
		if err := start(t, "exit 5").WaitFor(t.Context(), never); err == nil || !strings.Contains(err.Error(), "exit status 5") {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := start(t, "sleep 60")
		if err := p.WaitFor(ctx, never); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := p.WaitFor(t.Context(), func() (bool, error) { return false, os.ErrPermission }); !errors.Is(err, os.ErrPermission) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a program that there is not, and a log that cannot be made, are errors", func(t *testing.T) {
		if _, err := Start("nothing", exec.Command("/nothing"), filepath.Join(t.TempDir(), "log")); err == nil {
			t.Error("it runs")
		}
		if _, err := Start("nothing", exec.Command("true"), filepath.Join(t.TempDir(), "no", "log")); err == nil {
			t.Error("it has a log")
		}
	})
}
