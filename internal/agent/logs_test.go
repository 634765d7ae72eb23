package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

//
func TestServiceRotatesLogs(t *testing.T) {
	t.Parallel()
	const folder, path = `C:\var\log\containerd`, `C:\var\log\containerd\containerd.log`
	r := node(t)
	logs := func() (rotated []string) {
		infos, err := r.Drive().ReadDir(folder)
		r.must(err)
		for _, info := range infos {
			if info.Name != "containerd.log" {
				rotated = append(rotated, info.Name)
			}
		}
		return rotated
	}
	write := func(size int) {
		r.must(r.Drive().WriteFile(path, []byte(strings.Repeat("x", size))))
		r.pass(agent.LogCheck)
	}
	old := "containerd-" + r.ticking.Now().UTC().Add(-25*time.Hour).Format("20060102-150405") + ".log"
	kept := []string{
		"containerd-" + r.ticking.Now().UTC().Add(-23*time.Hour).Format("20060102-150405") + ".log", "containerd-mine.log", "containerd-20200101-000000.txt",
		"other-20200101-000000.log",
	}
	for _, name := range append(slices.Clone(kept), old) {
		r.must(r.Drive().WriteFile(folder+`\`+name, []byte("x")))
	}
	t.Run("one of the size stays; what is older than its age goes, and nothing else", func(t *testing.T) {
		write(1000)
		slices.Sort(kept)
		if got := logs(); !slices.Equal(got, kept) {
			t.Errorf("got %q, want %q", got, kept)
		}
	})
	t.Run("a larger one is rotated", func(t *testing.T) {
		write(1001)
		rotated := slices.DeleteFunc(logs(), func(name string) bool { return slices.Contains(kept, name) })
		if len(rotated) != 1 {
			t.Fatalf("got %q", rotated)
		}
		copied, _ := r.Drive().ReadFile(folder + `\` + rotated[0])
		left, err := r.Drive().ReadFile(path)
		if len(copied) != 1001 || len(left) != 0 || err != nil {
			t.Errorf("%d bytes copied, %d left (%v)", len(copied), len(left), err)
		}
	})
	t.Run("that is no drift and no event", func(t *testing.T) {
		if len(r.Events()) != 0 || strings.Contains(r.log(), "containerd.log") {
			t.Errorf("events %+v, log %s", r.Events(), r.log())
		}
	})
	t.Run("one that cannot be rotated is told of once, and the service goes on", func(t *testing.T) {
		remove := r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Logs" {
				return host.ErrDiskFull
			}
			return nil
		})
		defer remove()
		for range 3 {
			write(2000)
		}
		if n := strings.Count(r.log(), "logs are not kept as they should be"); n != 1 {
			t.Errorf("told %d times: %s", n, r.log())
		}
	})
}
