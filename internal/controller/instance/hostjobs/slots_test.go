package hostjobs

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

func TestAcquireSlot_SlowHostMovesToLateSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, late := semaphore.NewWeighted(1), semaphore.NewWeighted(1)
		slow, err := acquireSlot(t.Context(), limit, late, time.Minute, clock.RealClock{}, func() { t.Error("the first one waits") })
		if err != nil {
			t.Fatal(err)
		}
		waited, start := false, time.Now()
		next, err := acquireSlot(t.Context(), limit, late, time.Minute, clock.RealClock{}, func() { waited = true })
		if elapsed := time.Since(start); err != nil || !waited || elapsed != time.Minute {
			t.Fatalf("the next one begins after %s, having waited: %t, %v", elapsed, waited, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := acquireSlot(ctx, limit, late, time.Minute, clock.RealClock{}, func() {}); err == nil {
			t.Error("a third one begins, and there is no more room for those that take long")
		}
		slow()
		slow() // a second call has no effect
		next()
		synctest.Wait()
		if !limit.TryAcquire(1) || !late.TryAcquire(1) || limit.TryAcquire(1) || late.TryAcquire(1) {
			t.Error("what was taken was not given back once")
		}
	})
}

func TestClassOf_SlotDependsOnHistoryOfHost(t *testing.T) {
	for name, c := range map[string]struct {
		kind    Kind
		wasNode bool
		failed  bool
		want    class
	}{
		"a node in service takes none":                               {KindApply, true, false, inService},
		"a host that was never a node takes that of a first contact": {KindConnect, false, false, newHost},
		"one that has failed after a long time takes another":        {KindConnect, false, true, retried},
		"also if it was a node":                                      {KindConnect, true, true, retried},
		"work that is not on the host takes none":                    {KindSign, false, true, inService},
	} {
		t.Run(name, func(t *testing.T) {
			if got := classOf(&run{job: Job{Key: Key{Kind: c.kind}}, desired: DesiredHost{wasNode: c.wasNode}}, &record{failed: c.failed}); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// A host that accepts logins and then stalls needs a slot for failed hosts at each attempt.
func TestClassOf_LoginDoesNotClearFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var classes []class
		attempt := func(kind Kind, err error) {
			t.Helper()
			run := func(_ context.Context, h *Handle) (string, error) {
				classes = append(classes, h.class)
				if err != nil {
					time.Sleep(minSlowFailure + time.Second)
				}
				return "", err
			}
			b.requestJob(listedInstance(), Key{kind, "a"}, run)
			time.Sleep(2 * minSlowFailure)
			synctest.Wait()
			b.requestJob(listedInstance(), Key{kind, "a"}, run) // uses the outcome
		}
		stalled := errors.New("the host does not answer")
		for _, job := range []struct {
			kind Kind
			err  error
		}{{KindConnect, nil}, {KindFacts, stalled}, {KindConnect, nil}, {KindFacts, stalled}, {KindConnect, nil}, {KindFacts, nil}, {KindConnect, nil}} {
			attempt(job.kind, job.err)
		}
		want := []class{newHost, newHost, retried, retried, retried, retried, newHost}
		if !slices.Equal(classes, want) {
			t.Errorf("the classes are %v, want %v", classes, want)
		}
	})
}
