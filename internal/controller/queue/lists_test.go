package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// lister counts list calls. Each result contains the number of earlier calls.
type lister struct {
	duration time.Duration
	count    atomic.Int64
}

func (l *lister) list(context.Context) ([]int, error) {
	time.Sleep(l.duration)
	return []int{int(l.count.Add(1))}, nil
}

func TestLists_ReconcileNotDelayedByLongList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := types.NamespacedName{Namespace: "wmco", Name: "win-1"}
		var mu sync.Mutex
		var triggered []types.NamespacedName
		lists := Lists[int]{Shared: &SharedRead[[]int]{}, Clock: clock.RealClock{}, WaitTimeout: 50 * time.Millisecond,
			Trigger: func(name types.NamespacedName) {
				mu.Lock()
				defer mu.Unlock()
				triggered = append(triggered, name)
			}}
		source := &lister{duration: time.Second}
		var next *Listing[int]
		// get is the call of a reconcile for a version of the object, with a number of requests.
		get := func(version string, times int) (got []int, err error) {
			var present *Listing[int]
			for range times {
				got, err = lists.Get(t.Context(), object, version, Requests[int]{&next, &present}, source.list)
			}
			return got, err
		}
		expect := func(what string, version string, times int, want ...int) {
			t.Helper()
			begin := time.Now()
			got, err := get(version, times)
			if errors.Is(err, ErrNotRead) != (want == nil) || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %v, want %v", what, got, err, want)
			}
			if elapsed := time.Since(begin); elapsed > lists.WaitTimeout {
				t.Errorf("%s: it has waited for %s", what, elapsed)
			}
		}
		expect("a long list", "1", 2)
		expect("it is not read yet", "1", 1)
		time.Sleep(time.Second)
		synctest.Wait()
		mu.Lock()
		first := slices.Clone(triggered)
		mu.Unlock()
		if !slices.Equal(first, []types.NamespacedName{object}) {
			t.Errorf("triggered are %v", first)
		}
		expect("it is read, and serves one reconcile", "1", 3, 1)
		expect("the next reconcile reads again", "1", 1)
		time.Sleep(20 * time.Second) // covers the rest after a read, and the next read
		expect("the object has another version: what was read before does not count", "2", 1)
		time.Sleep(20 * time.Second)
		expect("it was read after that", "2", 1, 3)
		expect("it is not needed any more", "2", 1)
		time.Sleep(2 * maxListAge)
		expect("what was read long ago does not count", "2", 1)
		time.Sleep(20 * time.Second)
		expect("it was read again", "2", 1, 5)

		source.duration = 10 * time.Millisecond
		time.Sleep(20 * time.Second)
		expect("a short list is waited for", "3", 2, 6)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(triggered) != 5 {
			t.Errorf("%d reconciles were triggered, want one for each list that was waited for", len(triggered))
		}
	})
}
