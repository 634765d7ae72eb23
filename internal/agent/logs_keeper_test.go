package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

func TestService_RotatesLogs(t *testing.T) {
	t.Parallel()
	const dir, path = `C:\var\log\containerd`, `C:\var\log\containerd\containerd.log`
	r := newNodeRig(t)
	logs := func() (rotated []string) {
		infos, err := r.Drive().ReadDir(dir)
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
		r.advanceTime(timeouts.LogCheckInterval)
	}
	old := "containerd-" + r.ticking.Now().UTC().Add(-25*time.Hour).Format("20060102-150405") + ".log"
	kept := []string{
		"containerd-" + r.ticking.Now().UTC().Add(-23*time.Hour).Format("20060102-150405") + ".log", "containerd-mine.log", "containerd-20200101-000000.txt",
		"other-20200101-000000.log",
	}
	for _, name := range append(slices.Clone(kept), old) {
		r.must(r.Drive().WriteFile(dir+`\`+name, []byte("x")))
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
		copied, _ := r.Drive().ReadFile(dir + `\` + rotated[0])
		left, err := r.Drive().ReadFile(path)
		if len(copied) != 1001 || len(left) != 0 || err != nil {
			t.Errorf("%d bytes copied, %d left (%v)", len(copied), len(left), err)
		}
	})
	t.Run("that is no drift and no event", func(t *testing.T) {
		if len(r.Events()) != 0 || strings.Contains(r.readLog(), "containerd.log") {
			t.Errorf("events %+v, log %s", r.Events(), r.readLog())
		}
	})
	t.Run("one that cannot be rotated is reported once, and the service goes on", func(t *testing.T) {
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
		if n := strings.Count(r.readLog(), "log rotation failed"); n != 1 {
			t.Errorf("told %d times: %s", n, r.readLog())
		}
	})
}

const containerdLog = `C:\var\log\containerd\containerd.log`

// tooLarge makes the log of containerd larger than its limit.
func tooLarge(r *rig) {
	r.Helper()
	r.must(r.Drive().WriteFile(containerdLog, []byte(strings.Repeat("x", 1<<20))))
}

// rotatedLogs returns the names of the rotated logs of containerd.
func rotatedLogs(r *rig) (names []string) {
	r.Helper()
	infos, err := r.Drive().ReadDir(`C:\var\log\containerd`)
	r.must(err)
	for _, info := range infos {
		if strings.HasPrefix(info.Name, "containerd-") {
			names = append(names, info.Name)
		}
	}
	return names
}

// A lasting fault is reported once, and leftovers do not accumulate.
func TestService_LogRotationFailureReportedOnce(t *testing.T) {
	t.Parallel()
	t.Run("a full disk is reported once, and once more after it had room", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		expectReports := func(want int) {
			t.Helper()
			if n := strings.Count(r.readLog(), "log rotation failed"); n != want {
				t.Errorf("told %d times, want %d: %s", n, want, r.readLog())
			}
		}
		tooLarge(r)
		restore := r.FillDisk(512 << 10)
		for range 5 {
			r.advanceTime(timeouts.LogCheckInterval)
		}
		expectReports(1)
		restore()
		r.advanceTime(timeouts.LogCheckInterval)
		if n := len(rotatedLogs(r)); n != 1 {
			t.Errorf("%d copies", n)
		}
		tooLarge(r)
		restore = r.FillDisk(512 << 10)
		defer restore()
		r.advanceTime(timeouts.LogCheckInterval)
		expectReports(2)
	})
	t.Run("a log that another program has mapped stays, without copies", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		tooLarge(r)
		unmap, err := r.MapFile(containerdLog)
		r.must(err)
		for range 3 {
			r.advanceTime(timeouts.LogCheckInterval)
		}
		if got := rotatedLogs(r); len(got) != 0 {
			t.Errorf("copies %q", got)
		}
		unmap()
		r.advanceTime(timeouts.LogCheckInterval)
		if got := rotatedLogs(r); len(got) != 1 {
			t.Errorf("copies %q", got)
		}
	})
	// half copies the log, truncates it only if empty is true, and fails.
	half := func(r *rig, empty bool) (remove func()) {
		return r.OnOperation(func(o fake.Operation) error {
			if o.Interface != "Logs" {
				return nil
			}
			path := strings.TrimSuffix(containerdLog, ".log") + "-" + r.ticking.Now().UTC().Format("20060102-150405") + ".log"
			data, err := r.Drive().ReadFile(containerdLog)
			if err == nil {
				err = r.Drive().WriteFile(path, data)
			}
			if err == nil && empty {
				err = r.Drive().WriteFile(containerdLog, nil)
			}
			return errors.Join(host.ErrInUse, err)
		})
	}
	t.Run("a copy of a log that was not emptied is deleted", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		tooLarge(r)
		defer half(r, false)()
		for range 3 {
			r.advanceTime(timeouts.LogCheckInterval)
		}
		if got := rotatedLogs(r); len(got) != 0 {
			t.Errorf("copies %q", got)
		}
	})
	t.Run("while that copy cannot be deleted there is no other", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		tooLarge(r)
		restore := half(r, false)
		allow := r.OnOperation(func(o fake.Operation) error {
			if o.Interface == "Files" && o.Method == "Remove" && strings.Contains(o.Target, `\containerd-`) {
				return host.ErrInUse
			}
			return nil
		})
		for range 3 {
			r.advanceTime(timeouts.LogCheckInterval)
		}
		if got := rotatedLogs(r); len(got) != 1 {
			t.Errorf("copies %q", got)
		}
		allow()
		restore()
		r.advanceTime(timeouts.LogCheckInterval)
		if got, left := rotatedLogs(r), len(r.mustRead(containerdLog)); len(got) != 1 || left != 0 {
			t.Errorf("copies %q, %d bytes left in the log", got, left)
		}
	})
	t.Run("a copy of a log that was emptied all the same stays", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		tooLarge(r)
		defer half(r, true)()
		r.advanceTime(timeouts.LogCheckInterval)
		if got := rotatedLogs(r); len(got) != 1 {
			t.Errorf("copies %q", got)
		}
	})
}

func (r *rig) mustRead(path string) []byte {
	r.Helper()
	data, err := r.Drive().ReadFile(path)
	r.must(err)
	return data
}
