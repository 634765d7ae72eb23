package queue

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestSharedRead_ThousandCallersShareTwoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads SharedRead[int]
		written, begun := 0, 0
		read := func(context.Context) (int, error) {
			begun++
			value := written
			time.Sleep(10 * time.Millisecond)
			return value, nil
		}
		readOnce := func(want int) {
			if got, err := reads.Get(t.Context(), clock.RealClock{}, read); got != want || err != nil {
				t.Errorf("got %d, error %v, want %d", got, err, want)
			}
		}
		var all sync.WaitGroup
		all.Go(func() { readOnce(0) })
		synctest.Wait() // the read has started
		written = 1
		for range 1000 {
			all.Go(func() { readOnce(1) }) // observes the earlier write despite the running read
		}
		all.Wait()
		if begun != 2 {
			t.Errorf("there were %d readings", begun)
		}
	})
}

func TestSharedRead_ReadsUseTenthOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads SharedRead[int]
		read := func(context.Context) (int, error) { time.Sleep(100 * time.Millisecond); return 0, nil }
		begin := time.Now()
		for range 11 {
			if _, err := reads.Get(t.Context(), clock.RealClock{}, read); err != nil {
				t.Fatal(err)
			}
		}
		if elapsed := time.Since(begin); elapsed != 10100*time.Millisecond {
			t.Errorf("eleven readings of 100 ms, one after the other, took %s", elapsed)
		}
	})
}

func TestSharedRead_CanceledCallerDoesNotEndRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads SharedRead[int]
		read := func(ctx context.Context) (int, error) {
			time.Sleep(time.Second)
			return 7, ctx.Err()
		}
		readOnce := func(ctx context.Context, want error) {
			if got, err := reads.Get(ctx, clock.RealClock{}, read); !errors.Is(err, want) || err == nil && got != 7 {
				t.Errorf("got %d, error %v, want %v", got, err, want)
			}
		}
		first, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { readOnce(t.Context(), nil) }) // the running read
		synctest.Wait()
		all.Go(func() { readOnce(first, context.Canceled) }) // requests the next read, and is canceled
		synctest.Wait()
		all.Go(func() { readOnce(t.Context(), nil) }) // waits for the same read
		synctest.Wait()
		canceled, end := context.WithCancel(t.Context())
		all.Go(func() { readOnce(canceled, context.Canceled) })
		synctest.Wait()
		cancel()
		end()
		all.Wait()
	})
}

func TestSharedRead_ErrorIsNotCached(t *testing.T) {
	var reads SharedRead[int]
	away := errors.New("the API server is away")
	if _, err := reads.Get(t.Context(), clock.RealClock{}, func(context.Context) (int, error) { return 0, away }); !errors.Is(err, away) {
		t.Errorf("got error %v", err)
	}
	if got, err := reads.Get(t.Context(), clock.RealClock{}, func(context.Context) (int, error) { return 1, nil }); got != 1 || err != nil {
		t.Errorf("got %d, error %v", got, err)
	}
}

func TestSharedRead_PanicIsErrorForAllCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads SharedRead[int]
		read := func(context.Context) (int, error) {
			time.Sleep(time.Second)
			panic("no such thing")
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := reads.Get(t.Context(), clock.RealClock{}, read); err == nil || !strings.Contains(err.Error(), "no such thing") {
					t.Errorf("got error %v", err)
				}
			})
		}
		all.Wait()
	})
}
