package hostjobs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// bench is a Runner under test that counts the requested reconciles.
type bench struct {
	*Runner
	t        *testing.T
	enqueued int
}

// newBench must be called in a bubble of synctest.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, Runner: NewRunner(remote.NewPool(&remote.Dialer{}), nil, clock.RealClock{})}
	b.OnEnd(func(types.NamespacedName) { b.enqueued++ })
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	<-b.Started()
	t.Cleanup(func() {
		end()
		<-done
	})
	return b
}

func machineInstance() *v1alpha1.WindowsInstance {
	instance := listedInstance()
	instance.Spec.Source = v1alpha1.Source{Machine: &v1alpha1.MachineReference{Name: "win-1", UID: "machine-uid"}}
	return instance
}

func listedInstance() *v1alpha1.WindowsInstance {
	return &v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: "win-1", UID: "uid-1"},
		Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.1", Username: "Administrator", DesiredState: v1alpha1.DesiredStateNode,
			Source: v1alpha1.Source{ConfigMapKey: "10.0.0.1"}},
	}
}

var shownResult = &result.Result{Outcome: result.Working}

// requestJob simulates a reconcile that needs the result of a job.
func (b *bench) requestJob(instance *v1alpha1.WindowsInstance, key Key, run func(context.Context, *Handle) (string, error)) (answer string,
	pending bool, err error) {
	b.t.Helper()
	host := b.HostFor(instance)
	if host.RunningJob() != nil {
		return "", true, nil
	}
	answer, o, err := Do(host, key, shownResult, run)
	b.Commit(context.Background(), instance, host)
	synctest.Wait()
	return answer, o != nil, err
}

var drain = Key{KindDrain, "a"}

func TestRunner_ResultReturnedOnceToNextReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, runs := newBench(t), 0
		run := func(context.Context, *Handle) (string, error) {
			runs++
			return "drained", errors.New("almost")
		}
		if _, pending, _ := b.requestJob(listedInstance(), drain, run); !pending || runs != 1 || b.enqueued != 1 {
			t.Fatalf("pending %t after %d runs, woken %d times", pending, runs, b.enqueued)
		}
		if answer, pending, err := b.requestJob(listedInstance(), drain, run); pending || answer != "drained" || err == nil || runs != 1 {
			t.Errorf("%q, %v; pending %t after %d runs", answer, err, pending, runs)
		}
		if _, pending, _ := b.requestJob(listedInstance(), drain, run); !pending || runs != 2 {
			t.Errorf("the answer is given twice: pending %t after %d runs", pending, runs)
		}
		if _, pending, _ := b.requestJob(listedInstance(), Key{KindDrain, "b"}, run); !pending || runs != 3 {
			t.Errorf("the answer to other work is taken: pending %t after %d runs", pending, runs)
		}
	})
}

func TestRunner_JobStartsAtCommitAndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, runs, end := newBench(t), 0, make(chan struct{})
		run := func(context.Context, *Handle) (string, error) {
			runs++
			<-end
			return "", nil
		}
		first, second := b.HostFor(listedInstance()), b.HostFor(listedInstance())
		for _, host := range []*Host{first, second} {
			if _, o, _ := Do(host, drain, shownResult, run); o != shownResult {
				t.Fatalf("%+v", o)
			}
		}
		if synctest.Wait(); runs > 0 {
			t.Fatal("it runs")
		}
		if !b.Commit(t.Context(), listedInstance(), first) || b.Commit(t.Context(), listedInstance(), second) {
			t.Error("of two, not the first one was begun alone")
		}
		synctest.Wait()
		if running := b.HostFor(listedInstance()).RunningJob(); runs != 1 || running == nil || running.Key != drain {
			t.Errorf("%d run: %+v", runs, running)
		}
		close(end)
	})
}

func TestRunner_PanicIsFailureOfJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		run := func(context.Context, *Handle) (string, error) { panic("nil map") }
		b.requestJob(listedInstance(), drain, run)
		if _, pending, err := b.requestJob(listedInstance(), drain, run); pending || err == nil || !strings.Contains(err.Error(), "nil map") {
			t.Errorf("pending %t: %v", pending, err)
		}
	})
}

//
func TestRunner_StopsUnwantedJob(t *testing.T) {
	for name, c := range map[string]struct {
		instance *v1alpha1.WindowsInstance
		change   func(*v1alpha1.WindowsInstance)
		changing bool // whether the host is changed
		cutOff   bool
		unwanted bool
	}{
		"a Machine that is being deleted, also while its host is changed": {machineInstance(), setUnmanaged, true, true, true},
		"a Machine that is gone":                                 {machineInstance(), replaceUID, true, true, true},
		"a listed host that is to be given back":                 {listedInstance(), setRemoved, false, true, true},
		"not a change of a listed host that is to be given back": {listedInstance(), setRemoved, true, false, true},
		"a pause":                         {listedInstance(), setPaused, false, true, true},
		"another address":                 {listedInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Address = "10.0.0.2" }, false, true, true},
		"nothing else of an instance":     {listedInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Node = &v1alpha1.NodeMetadata{} }, false, false, false},
		"an instance that was made again": {listedInstance(), replaceUID, false, true, true},
		"not a change for an instance that is made again": {listedInstance(), replaceUID, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, end, cut := newBench(t), make(chan struct{}), false
				b.requestJob(c.instance, drain, func(ctx context.Context, h *Handle) (string, error) {
					if c.changing {
						if err := h.BeginChange(); err != nil {
							return "", err
						}
					}
					select {
					case <-ctx.Done():
						cut = true
					case <-end:
					}
					return "", nil
				})
				now := c.instance.DeepCopy()
				c.change(now)
				running := b.HostFor(now).RunningJob()
				if running == nil {
					t.Fatal("it does not run")
				}
				cause := running.Desired.StopCause(DesiredHostOf(now))
				if (cause != nil) != c.unwanted {
					t.Errorf("it is unwanted: %v", cause)
				}
				if cause != nil {
					b.Stop(nameOf(now), cause)
				}
				if synctest.Wait(); cut != c.cutOff {
					t.Errorf("it is cut off: %t", cut)
				}
				close(end)
				synctest.Wait()
				if ended := b.HostFor(now).ended; b.HostFor(now).RunningJob() != nil || (ended != nil) != !c.unwanted {
					t.Errorf("its outcome is %+v", ended)
				}
			})
		})
	}
}

func setUnmanaged(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateUnmanaged }
func setRemoved(i *v1alpha1.WindowsInstance)   { i.Spec.DesiredState = v1alpha1.DesiredStateRemoved }
func setPaused(i *v1alpha1.WindowsInstance)    { i.Spec.Paused = true }
func replaceUID(i *v1alpha1.WindowsInstance)   { i.UID = "uid-2" }

// The effect of a job that changes the host is unknown if the reconcile does not use the outcome. A job requested
// without the outcome must not start.
func TestRunner_UnusedChangeResultClearsHostRecord(t *testing.T) {
	done := func(context.Context, *Handle) (string, error) { return "", nil }
	for kind, forgotten := range map[Kind]bool{KindApply: true, KindReboot: true, KindDrain: false, KindVerify: false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			host := b.HostFor(listedInstance())
			host.Facts, host.AppliedDigest, host.Restored = &plan.Facts{}, "abc", true // a record without a connection
			b.Commit(t.Context(), listedInstance(), host)
			b.requestJob(listedInstance(), Key{kind, "a"}, done)
			if b.HostFor(listedInstance()).AppliedDigest != "abc" {
				t.Errorf("%s: it is forgotten before the outcome was due", kind)
			}
			next := b.HostFor(listedInstance())
			_, _, _ = Do(next, Key{KindApply, "b"}, shownResult, done)
			if begins := b.Commit(t.Context(), listedInstance(), next); begins == forgotten {
				t.Errorf("%s: the next job begins: %t", kind, begins)
			}
			if known := b.HostFor(listedInstance()).AppliedDigest == "abc"; known == forgotten {
				t.Errorf("%s: what was known before is known: %t", kind, known)
			}
		})
	}
}

// A reconcile may end before the phase that requested the job, because of a conflicting write or an unfinished
// list.
func TestRunner_ResultKeptForLaterReconcile(t *testing.T) {
	for after, kept := range map[time.Duration]bool{time.Second: true, outcomeTTL: false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			times := 0
			connect := func(context.Context, *Handle) (string, error) {
				times++
				return "connected", nil
			}
			b.requestJob(listedInstance(), Key{KindConnect, "a"}, connect)
			b.Commit(t.Context(), listedInstance(), b.HostFor(listedInstance())) // ends early
			time.Sleep(after)
			b.Commit(t.Context(), listedInstance(), b.HostFor(listedInstance())) // again
			if got, pending, err := b.requestJob(listedInstance(), Key{KindConnect, "a"}, connect); pending == kept || err != nil || kept && got != "connected" {
				t.Errorf("after %s: %q, pending %t, %v", after, got, pending, err)
			}
			if want := map[bool]int{true: 1, false: 2}[kept]; times != want {
				t.Errorf("after %s the job was done %d times", after, times)
			}
		})
	}
}

func TestRunner_IdleOrDeletedHostNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		done := func(context.Context, *Handle) (string, error) { return "", nil }
		b.requestJob(listedInstance(), drain, done)
		b.requestJob(listedInstance(), drain, done)
		if len(b.records) > 0 {
			t.Errorf("%d records are left", len(b.records))
		}
		end := make(chan struct{})
		b.requestJob(listedInstance(), drain, func(context.Context, *Handle) (string, error) {
			<-end
			return "", nil
		})
		b.Forget(nameOf(listedInstance()))
		close(end)
		if synctest.Wait(); len(b.records) > 0 {
			t.Errorf("%d records are left", len(b.records))
		}
	})
}

func TestRunner_NoJobStartsAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(remote.NewPool(&remote.Dialer{}), nil, clock.RealClock{})
		host := r.HostFor(listedInstance())
		_, _, _ = Do(host, drain, shownResult, func(context.Context, *Handle) (string, error) { return "", nil })
		if r.Commit(t.Context(), listedInstance(), host) {
			t.Error("one has begun before the operator leads")
		}
		ctx, end := context.WithCancel(t.Context())
		cut := false
		ended := make(chan error, 1)
		go func() { ended <- r.Start(ctx) }()
		<-r.Started()
		if !r.Commit(t.Context(), listedInstance(), host) {
			t.Error("none begins when it leads")
		}
		synctest.Wait()
		host = r.HostFor(listedInstance())
		_, _, _ = Do(host, Key{KindDrain, "b"}, shownResult, func(ctx context.Context, _ *Handle) (string, error) {
			<-ctx.Done()
			cut = true
			return "", ctx.Err()
		})
		r.Commit(t.Context(), listedInstance(), host)
		end()
		if err := <-ended; err != nil || !cut || r.CountRunning() > 0 {
			t.Errorf("cut off %t, %d run: %v", cut, r.CountRunning(), err)
		}
		host = r.HostFor(listedInstance())
		_, _, _ = Do(host, drain, shownResult, func(context.Context, *Handle) (string, error) { return "", nil })
		if r.Commit(t.Context(), listedInstance(), host) {
			t.Error("one has begun after the operator has ended")
		}
	})
}
