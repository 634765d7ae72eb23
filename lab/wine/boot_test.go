package wine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestRestart(t *testing.T) {
	h := newHost(t, Options{Name: "restarts", Address: hostAddress(20)})
	restart := func(t *testing.T) {
		t.Helper()
		next, start := h.Boots()+1, time.Now()
		if _, err := h.Exec(t.Context(), `C:\guest.exe restart`); err != nil {
			t.Logf("the session of the restart ended with: %v", err)
		}
		if err := h.WaitBoot(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		t.Logf("back after %v, of which %v down", time.Since(start), h.options.BootDelay)
	}
	t.Run("a service that starts by itself runs again after a restart", func(t *testing.T) {
		run(t, h, `C:\guest.exe install demo`)
		restart(t)
		if got := run(t, h, `C:\guest.exe state demo`); got != "true" {
			t.Errorf("it runs: %s", got)
		}
		if starts := strings.Fields(run(t, h, `type C:\starts.txt`)); len(starts) != 2 {
			t.Errorf("it was started %d times, want once in each boot", len(starts))
		}
	})
	t.Run("a host name that was set is the host's after a restart", func(t *testing.T) {
		run(t, h, `C:\guest.exe name renamed`)
		if got := run(t, h, "hostname"); !strings.EqualFold(got, "restarts") {
			t.Errorf("before the restart it is %s", got)
		}
		restart(t)
		if got := run(t, h, "hostname"); !strings.EqualFold(got, "renamed") {
			t.Errorf("after the restart it is %s", got)
		}
	})
	t.Run("the process of a service has more than Wine's ten seconds to connect", func(t *testing.T) {
		run(t, h, `C:\guest.exe install late 12s`)
		if got := run(t, h, `C:\guest.exe state late`); got != "true" {
			t.Errorf("it runs: %s", got)
		}
	})
}

func TestRestart_HangingHostIsReset(t *testing.T) {
	h := newHost(t, Options{Name: "hangs", Address: hostAddress(21), HangTimeout: 15 * time.Second})
	next := h.Boots() + 1
	// A frozen process still owns the port and accepts connections.
	for pid, line := range processesOf(t, h.dir) {
		if !strings.Contains(line, "sshd.exe") {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.WaitBoot(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got := run(t, h, "hostname"); !strings.EqualFold(got, "hangs") {
		t.Errorf("it calls itself %s", got)
	}
	if !slices.ContainsFunc(h.Journal(), func(e Entry) bool { return strings.Contains(e.Detail, "was reset") }) {
		t.Errorf("the journal does not tell of it: %v", h.Journal())
	}
}

func TestHosts_SixStartConcurrently(t *testing.T) {
	start := time.Now()
	hosts := make([]*Host, 6)
	var group sync.WaitGroup
	for i := range hosts {
		group.Go(func() {
			h, err := New(t.Context(), Options{Base: base, Name: fmt.Sprintf("six-%d", i), Address: hostAddress(byte(30 + i))})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
			hosts[i] = h
			if err := h.Start(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	t.Logf("six hosts up after %v", time.Since(start))
	for _, h := range hosts {
		if h == nil {
			continue
		}
		if got := run(t, h, "hostname"); !strings.EqualFold(got, h.Name()) {
			t.Errorf("%s calls itself %s", h.Name(), got)
		}
	}
}
