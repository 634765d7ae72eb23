package bench

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/controller/disruption"
)

// settled runs settle in a bubble, whose time passes only when nothing is left to do, and returns how much of it
// passed.
func settled(t *testing.T, look func(passed time.Duration) (activity, error)) (passed time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err = settle(t.Context(), clock.RealClock{}, quietFor, func() (activity, error) { return look(time.Since(begin)) })
		passed = time.Since(begin)
	})
	return passed, err
}

func TestSettle(t *testing.T) {
	t.Run("an operator that does nothing is quiet soon", func(t *testing.T) {
		passed, err := settled(t, func(time.Duration) (activity, error) { return activity{}, nil })
		if err != nil || passed < quietFor || passed >= settleLimit {
			t.Errorf("%s passed, error %v", passed, err)
		}
	})
	t.Run("one that still works is waited for", func(t *testing.T) {
		passed, err := settled(t, func(passed time.Duration) (activity, error) {
			return activity{writes: int(min(passed, 10*time.Second) / time.Second)}, nil
		})
		if err != nil || passed < 10*time.Second+quietFor || passed >= settleLimit {
			t.Errorf("%s passed, error %v", passed, err)
		}
	})
	t.Run("one that is never quiet is not waited for without end", func(t *testing.T) {
		passed, err := settled(t, func(passed time.Duration) (activity, error) {
			return activity{reconciles: int(passed / time.Second)}, nil
		})
		if err != nil || passed < settleLimit {
			t.Errorf("%s passed, error %v", passed, err)
		}
	})
	t.Run("counts that cannot be read are an error", func(t *testing.T) {
		broken := errors.New("broken")
		if _, err := settled(t, func(time.Duration) (activity, error) {
			return activity{}, broken
		}); !errors.Is(err, broken) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("the end of the run ends the wait", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := settle(ctx, clock.RealClock{}, quietFor, func() (activity, error) { return activity{}, nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestAFleetIsQuietOnlyAfterTheOperatorGatheredItsChanges(t *testing.T) {
	if quiet := quietTime(50); quiet <= disruption.LongestGathering {
		t.Errorf("50 hosts are quiet after %s, but the operator gathers their changes for up to %s", quiet,
			disruption.LongestGathering)
	}
	if quiet := quietTime(1); quiet != quietFor {
		t.Errorf("one host is quiet after %s, not %s", quiet, quietFor)
	}
}

func TestCutWires(t *testing.T) {
	w := newWires()
	var far []net.Conn
	dial := w.dialer(func(context.Context, string, string) (net.Conn, error) {
		near, other := net.Pipe()
		far = append(far, other)
		return near, nil
	})
	open := func() net.Conn {
		conn, err := dial(t.Context(), "tcp", "api:6443")
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	closed, cut := open(), open()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if n := w.cut(); n != 1 {
		t.Errorf("%d connections were cut, want the one that is open", n)
	}
	if _, err := cut.Write([]byte("x")); err == nil {
		t.Error("a cut connection takes data")
	}
	open()
	if n := w.cut(); n != 1 {
		t.Errorf("%d connections were cut, want the new one", n)
	}
	t.Run("a dial that fails is passed on", func(t *testing.T) {
		broken := errors.New("refused")
		_, err := w.dialer(func(context.Context, string, string) (net.Conn, error) {
			return nil, broken
		})(t.Context(), "", "")
		if !errors.Is(err, broken) {
			t.Errorf("error is %v", err)
		}
	})
	for _, conn := range far {
		_ = conn.Close()
	}
}

func TestCPUModel(t *testing.T) {
	for want, text := range map[string]string{
		"Example CPU @ 3.00GHz": "processor\t: 0\nvendor_id\t: Example\nmodel\t\t: 7\nmodel name\t: Example CPU @ 3.00GHz\nmodel name\t: another\n",
		"":                      "Processor : ARMv8\nFeatures: fp\n",
	} {
		if got := cpuModel(strings.NewReader(text)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
