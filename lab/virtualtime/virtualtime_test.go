package virtualtime

import (
	"context"
	"os/exec"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// run lets time pass until the test ends.
func run(t *testing.T, c *Clock, busy func() bool) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx, busy)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func isIdle() bool { return false }

func TestClock_AdvancesOnlyWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, busy := New(noon), atomic.Bool{}
		busy.Store(true)
		over := c.After(time.Hour)
		run(t, c, busy.Load)
		time.Sleep(time.Minute) // of a busy machine
		if now := c.Now(); !now.Equal(noon) {
			t.Errorf("after a minute's work it is %s", now)
		}
		busy.Store(false)
		start := time.Now()
		if now := <-over; !now.Equal(noon.Add(time.Hour)) {
			t.Errorf("an hour later it is %s", now)
		}
		if elapsed := time.Since(start); elapsed > time.Second {
			t.Errorf("an hour took %s", elapsed)
		}
	})
}

// A goroutine that works only for a moment between two idle periods is not missed for long.
func TestClock_RepeatedWorkStopsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls := New(noon), 0
		c.NewTimer(time.Hour)
		run(t, c, func() bool { calls++; return calls%idleChecks == 0 })
		time.Sleep(time.Minute)
		if now := c.Now(); !now.Equal(noon) {
			t.Errorf("it is %s", now)
		}
	})
}

func TestTimer_FiresInOrderAndOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(noon)
		late, early, stopped, moved := c.NewTimer(3*time.Second), c.NewTimer(time.Second), c.NewTimer(time.Second),
			c.NewTimer(time.Second)
		ticks := c.NewTicker(2 * time.Second)
		if !stopped.Stop() || stopped.Stop() || !moved.Reset(5*time.Second) {
			t.Error("a timer does not know whether it waits")
		}
		run(t, c, isIdle)
		for _, next := range []struct {
			what  string
			timer interface{ C() <-chan time.Time }
			at    time.Duration
		}{
			{"the early timer", early, time.Second},
			{"the first tick", ticks, 2 * time.Second},
			{"the late timer", late, 3 * time.Second},
			{"the second tick", ticks, 4 * time.Second},
			{"the timer that was moved", moved, 5 * time.Second},
		} {
			if now := <-next.timer.C(); now.Sub(noon) != next.at {
				t.Errorf("%s fires after %s", next.what, now.Sub(noon))
			}
		}
		ticks.Stop()
		if late.Stop() || late.Reset(time.Second) {
			t.Error("a timer that has fired waits")
		}
		if now := <-late.C(); now.Sub(noon) < 6*time.Second {
			t.Errorf("a timer that was set again fires after %s", now.Sub(noon))
		}
		select {
		case <-stopped.C():
			t.Error("a timer that was stopped fires")
		default:
		}
	})
}

func TestTimer_ZeroDurationFiresImmediately(t *testing.T) {
	c := New(noon)
	if now := <-c.After(0); !now.Equal(noon) {
		t.Errorf("at %s", now)
	}
	var passive clock.PassiveClock = c
	if passed := passive.Since(noon.Add(-time.Second)); passed != time.Second {
		t.Errorf("a second is %s", passed)
	}
}

func TestTimer_NearlySimultaneousTimersFireTogether(t *testing.T) {
	c := New(noon)
	first, second, later := c.NewTimer(time.Second), c.NewTimer(time.Second+leapGranularity), c.NewTimer(time.Second+leapGranularity+1)
	c.leapForward(time.Second)
	if now := <-first.C(); now.Sub(noon) != time.Second {
		t.Errorf("the first fires after %s", now.Sub(noon))
	}
	if now := <-second.C(); now.Sub(noon) != time.Second+leapGranularity || !c.Now().Equal(now) {
		t.Errorf("the second fires after %s", now.Sub(noon))
	}
	if !later.Stop() {
		t.Error("the third fires as well")
	}
}

func TestStride_PassesManyTimersButNoShortWait(t *testing.T) {
	c := New(noon)
	ticks, hour := c.NewTicker(500*time.Millisecond), c.NewTimer(time.Hour)
	c.Stride(5 * time.Minute)
	c.leapForward(time.Minute)
	if passed := c.Since(noon); passed != 5*time.Minute+500*time.Millisecond {
		t.Errorf("a stride is %s", passed)
	}
	if now := <-ticks.C(); now.Sub(noon) != 500*time.Millisecond {
		t.Errorf("the tick is of %s", now)
	}
	brief := c.NewTimer(maxPollWait - 1)
	before := c.Now()
	c.leapForward(time.Minute)
	c.leapForward(time.Minute)
	if now := <-brief.C(); now.Sub(before) != maxPollWait-1 || c.Since(now) > leapGranularity {
		t.Errorf("one who waited for less than %s is woken after %s, and the clock is at %s", maxPollWait, now.Sub(before), c.Since(before))
	}
	c.Stride(0)
	before = c.Now()
	c.leapForward(time.Minute)
	if passed := c.Since(before); passed > time.Second {
		t.Errorf("without strides a leap is %s", passed)
	}
	if !hour.Stop() {
		t.Error("the timer of an hour has fired")
	}
}

// A ticker buffers no further ticks for a missing receiver.
func TestTicker_LateReceiverGetsOneTick(t *testing.T) {
	c := New(noon)
	ticks := c.NewTicker(time.Second)
	for range 3 {
		c.leapForward(time.Second)
	}
	if now := <-ticks.C(); now.Sub(noon) != time.Second {
		t.Errorf("the tick is of %s", now)
	}
	select {
	case <-ticks.C():
		t.Error("there is another")
	default:
	}
}

func TestPrograms_ComputingProgramIsBusy(t *testing.T) {
	start := func(script string) int {
		command := exec.CommandContext(t.Context(), "bash", "-c", script)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait() // it was killed
		})
		return command.Process.Pid
	}
	expectBusy := func(what string, process int, want bool) {
		t.Helper()
		for isWorking(process) != want {
			if t.Context().Err() != nil {
				t.Fatalf("%s: it works: %t", what, !want)
			}
			time.Sleep(time.Millisecond)
		}
	}
	expectBusy("one that computes", start("while :; do :; done"), true)
	expectBusy("one that sleeps", start("exec sleep 600"), false)
	if isWorking(1 << 30) {
		t.Error("one that is not there works")
	}
}

func TestPrograms_OwnProcessIsBusy(t *testing.T) {
	busy, worked := Programs(), make(chan struct{})
	var stop atomic.Bool
	go func() {
		defer close(worked)
		for !stop.Load() { // at work
			continue
		}
	}()
	for !busy() {
		time.Sleep(time.Millisecond)
	}
	stop.Store(true)
	<-worked
	for busy() {
		time.Sleep(time.Millisecond)
	}
}
