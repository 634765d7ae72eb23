package fleet

import (
	"os"
	"testing"
	"time"
)

func TestProcessorTimeOfAProcess(t *testing.T) {
	// A name may hold what else parts the fields.
	const line = "12 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 9 0 100 1 1\n"
	if got, err := parseStat([]byte(line)); err != nil || got != 3 {
		t.Errorf("%g s, error %v; want 2.5 s of the user and 0.5 s of the system", got, err)
	}
	for _, wrong := range []string{"", "12 (a) S 1", "12 (a) S 1 2 3 4 5 6 7 8 9 10 x 50 0 0"} {
		if _, err := parseStat([]byte(wrong)); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
	t.Run("a process that works has more of it", func(t *testing.T) {
		before, err := processorTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		for {
			now, err := processorTime(os.Getpid())
			if err != nil {
				t.Fatal(err)
			}
			if now > before {
				break
			}
		}
	})
	t.Run("a process that there is not is an error", func(t *testing.T) {
		if _, err := processorTime(1 << 30); err == nil {
			t.Error("it is none")
		}
		if _, _, err := residentMemory(1 << 30); err == nil {
			t.Error("it is none")
		}
	})
}

func TestMemoryOfAProcess(t *testing.T) {
	const status = "Name:\twmco\nVmPeak:\t 9 kB\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\nThreads:\t7\n"
	if peak, now, err := parseStatus([]byte(status)); err != nil || peak != 2<<20 || now != 1<<20 {
		t.Errorf("%d bytes at most, %d now, error %v", peak, now, err)
	}
	for _, wrong := range []string{"", "VmHWM:\t 1 kB\n", "VmHWM:\t 1 MB\nVmRSS:\t 1 kB\n", "VmHWM:\t x kB\nVmRSS:\t 1 kB\n"} {
		if _, _, err := parseStatus([]byte(wrong)); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
	if peak, now, err := residentMemory(os.Getpid()); err != nil || now < 1<<20 || peak < now {
		t.Errorf("this process has %d bytes at most, %d now, error %v", peak, now, err)
	}
}

func TestCPU(t *testing.T) {
	before, after := CPU{Operator: 1, ControlPlane: 2, Hosts: 3}, CPU{Operator: 2, ControlPlane: 4, Hosts: 6}
	if got := after.minus(before); got != before || got.Total() != 6 {
		t.Errorf("got %+v", got)
	}
	if tick != 10*time.Millisecond {
		t.Errorf("USER_HZ is 100, and a tick %s", tick)
	}
}
