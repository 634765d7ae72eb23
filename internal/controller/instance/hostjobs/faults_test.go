package hostjobs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// allKinds lists the kinds of job.go.
var allKinds = []Kind{KindConnect, KindFacts, KindPlan, KindApply, KindVerify, KindCommit, KindRollback, KindRenew, KindReboot,
	KindFindRemains, KindRestore, KindDrain, KindSign, KindResolve}

func TestRunner_JobEndsAtTimeoutOfKind(t *testing.T) {
	if len(timeoutByKind) != len(allKinds) {
		t.Errorf("there are limits of %d kinds, and %d kinds", len(timeoutByKind), len(allKinds))
	}
	for _, kind := range allKinds {
		for _, changes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, changing the host: %t", kind, changes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, key := newBench(t), Key{kind, "a"}
					run := func(ctx context.Context, h *Handle) (string, error) {
						if changes {
							if err := h.BeginChange(); err != nil {
								return "", err
							}
						}
						<-ctx.Done()
						return "", ctx.Err()
					}
					start := time.Now()
					b.requestJob(listedInstance(), key, run)
					for b.CountRunning() > 0 {
						time.Sleep(time.Second)
					}
					if elapsed := time.Since(start); timeoutByKind[kind] == 0 || elapsed < timeoutByKind[kind] || elapsed > timeoutByKind[kind]+time.Second || b.MaxOverdue() > 0 {
						t.Errorf("it took %s; a job is beyond its limit for %s", elapsed, b.MaxOverdue())
					}
					if _, pending, err := b.requestJob(listedInstance(), key, run); pending || !errors.Is(err, ErrTimedOut) {
						t.Errorf("pending %t: %v", pending, err)
					}
				})
			})
		}
	}
}

// The health probe of the operator reports a job that ignores its limit.
func TestRunner_OverdueJobReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := newBench(t), make(chan struct{})
		b.requestJob(listedInstance(), drain, func(context.Context, *Handle) (string, error) {
			<-end
			return "", nil
		})
		time.Sleep(timeoutByKind[KindDrain] + time.Hour)
		if got := b.MaxOverdue(); got != time.Hour {
			t.Errorf("it is beyond its limit for %s", got)
		}
		close(end)
		synctest.Wait()
		if b.MaxOverdue() > 0 || b.CountRunning() > 0 {
			t.Error("it is reported when it has ended")
		}
	})
}

// As many jobs panic as there are slots. No slot is lost, and the next job runs at once.
func TestRunner_PanicReleasesSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, key := newBench(t), Key{KindConnect, "a"}
		for range maxFirstContacts + 1 {
			b.requestJob(listedInstance(), key, func(context.Context, *Handle) (string, error) { panic("nil map") })
			if _, pending, err := b.requestJob(listedInstance(), key, nil); pending || err == nil {
				t.Fatalf("pending %t: %v", pending, err)
			}
		}
		ran := false
		b.requestJob(listedInstance(), key, func(context.Context, *Handle) (string, error) {
			ran = true
			return "", nil
		})
		if !ran || b.CountRunning() > 0 {
			t.Errorf("the next one has run: %t", ran)
		}
	})
}

// The connections of jobs that ignore the end of the operator are closed after shutdownTimeout. The operator waits
// until all jobs have ended.
func TestRunner_ShutdownWaitsForAllJobs(t *testing.T) {
	for _, kind := range allKinds {
		for _, heeds := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, which heeds it: %t", kind, heeds), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					hosts := remote.NewPool(&remote.Dialer{})
					r := NewRunner(hosts, nil, clock.RealClock{})
					woken := 0
					r.OnEnd(func(types.NamespacedName) { woken++ })
					ctx, end := context.WithCancel(t.Context())
					done := make(chan struct{})
					go func() {
						defer close(done)
						_ = r.Start(ctx)
					}()
					<-r.Started()
					b := &bench{t: t, Runner: r}
					stuck := make(chan struct{})
					b.requestJob(listedInstance(), Key{kind, "a"}, func(ctx context.Context, h *Handle) (string, error) {
						if err := h.BeginChange(); err != nil {
							return "", err
						}
						if heeds {
							<-ctx.Done()
							return "", ctx.Err()
						}
						<-stuck
						return "", nil
					})
					start := time.Now()
					end()
					if heeds {
						if <-done; time.Since(start) > 0 {
							t.Errorf("it ends after %s", time.Since(start))
						}
						return
					}
					time.Sleep(shutdownTimeout - time.Second)
					if _, err := hosts.Get(canceledContext(), remote.Target{Instance: "other"}); errors.Is(err, remote.ErrClosed) {
						t.Error("the connections are closed before the time is over")
					}
					time.Sleep(time.Second)
					synctest.Wait()
					if _, err := hosts.Get(canceledContext(), remote.Target{Instance: "other"}); !errors.Is(err, remote.ErrClosed) {
						t.Errorf("the connections are not closed: %v", err)
					}
					select {
					case <-done:
						t.Error("nobody waits for the job")
					default:
					}
					close(stuck)
					<-done
				})
			})
		}
	}
}

func canceledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
