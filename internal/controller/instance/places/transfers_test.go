package places

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// sending begins the transfers of hosts, and tells what became of them. Time stands still in the test until all of them
// wait for something.
type sending struct {
	*testing.T
	transfers Transfers
	orders    map[string]*Order

	mu    sync.Mutex // held where several begin at once
	begun []string
	ends  map[string]func()
}

func newSending(t *testing.T) *sending {
	s := &sending{T: t, orders: map[string]*Order{}, ends: map[string]func(){}}
	t.Cleanup(s.endAll)
	return s
}

func (s *sending) endAll() {
	for len(s.ends) > 0 {
		for host, end := range s.ends {
			delete(s.ends, host)
			end()
			break
		}
		synctest.Wait()
	}
}

// begin has a host ask for a transfer, and returns when it has begun or waits.
func (s *sending) begin(host string) {
	s.Helper()
	if s.orders[host] == nil {
		s.orders[host] = new(Order)
	}
	go func() {
		end, err := s.transfers.Begin(s.Context(), clock.RealClock{}, s.orders[host], func() {})
		if err != nil {
			return // the test ends
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.begun, s.ends[host] = append(s.begun, host), end
	}()
	synctest.Wait()
}

func (s *sending) end(host string) {
	s.ends[host]()
	synctest.Wait()
}

// fill begins as many transfers as there is room for at once.
func (s *sending) fill() (hosts []string) {
	for i := range transferLimit {
		hosts = append(hosts, "first-"+string(rune('a'+i)))
		s.begin(hosts[i])
	}
	if len(s.begun) != transferLimit {
		s.Fatalf("%d of %d transfers have begun", len(s.begun), transferLimit)
	}
	s.begun = nil
	return hosts
}

func (s *sending) expect(want ...string) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.begun, want) {
		s.Errorf("begun have %q, want %q", s.begun, want)
	}
	s.begun = nil
}

func TestTransfersGoInTheOrderInWhichHostsCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSending(t)
		first := s.fill()
		s.begin("second")
		s.begin("third")
		s.expect()
		s.end(first[0])
		s.expect("second")
		// A host that has got its agent needs the other programs soon, and goes before all that have got nothing.
		s.begin(first[0])
		s.expect()
		s.end(first[1])
		s.expect(first[0])
		s.end(first[2])
		s.expect("third")
		// One that has failed begins anew.
		s.begin("fourth")
		*s.orders[first[1]] = 0
		s.begin(first[1])
		s.end(first[3])
		s.end(first[4])
		s.expect("fourth", first[1])
	})
}

func TestSlowTransfersDoNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSending(t)
		s.fill()
		s.begin("other")
		time.Sleep(transferShare - time.Second)
		synctest.Wait()
		s.expect()
		time.Sleep(time.Second)
		synctest.Wait()
		s.expect("other")
		if s.transfers.slow != transferLimit || s.transfers.fast != 1 {
			t.Errorf("%d are slow and %d are not", s.transfers.slow, s.transfers.fast)
		}
	})
}

func TestTheNumberOfTransfersIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSending(t)
		const most = transferLimit + slowTransferLimit
		for i := range most + 10 {
			s.begin(string(rune('a' + i)))
		}
		for range 10 {
			time.Sleep(transferShare)
			synctest.Wait()
		}
		if len(s.begun) != most {
			t.Errorf("%d transfers are under way, want %d", len(s.begun), most)
		}
		s.endAll()
		if len(s.begun) != most+10 || s.transfers.fast != 0 || s.transfers.slow != 0 {
			t.Errorf("%d have begun; %d and %d still count", len(s.begun), s.transfers.fast, s.transfers.slow)
		}
	})
}

// When all rooms are held by hosts on slow lines, each that ends must make room for one that comes after them.
func TestAnOverdueTransferCountsAsSlowOnceASlowOneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSending(t)
		var slow []string
		for i := range transferLimit + slowTransferLimit {
			slow = append(slow, "slow-"+string(rune('a'+i)))
			s.begin(slow[i])
		}
		for range 10 {
			time.Sleep(transferShare)
			synctest.Wait()
		}
		s.mu.Lock()
		if len(s.begun) != len(slow) {
			t.Errorf("%d transfers are under way", len(s.begun))
		}
		s.begun = nil
		s.mu.Unlock()
		s.begin("second")
		s.begin("third")
		s.expect()
		s.end(slow[0]) // counted as slow: the longest overdue of the others takes its room
		s.expect("second")
		s.end(slow[len(slow)-1]) // was overdue, and had no room among the slow ones
		s.expect("third")
		s.begin("fourth")
		time.Sleep(time.Second)
		synctest.Wait()
		s.expect()
		s.end(slow[1])
		s.expect("fourth")
	})
}

func TestAPanicWhileAHostIsToldThatItWaitsTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSending(t)
		first := s.fill()
		func() {
			defer func() { _ = recover() }()
			_, _ = s.transfers.Begin(t.Context(), clock.RealClock{}, new(Order), func() { panic("the status") })
		}()
		s.begin("next")
		s.end(first[0])
		s.expect("next")
	})
}

func TestAHostThatIsNotWaitedForLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSending(t)
		first := s.fill()
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the Machine is deleted")
		waits := false
		var err error
		go func() {
			_, err = s.transfers.Begin(ctx, clock.RealClock{}, new(Order), func() { waits = true })
		}()
		synctest.Wait()
		s.begin("next")
		cancel(gone)
		synctest.Wait()
		if !errors.Is(err, gone) || !waits {
			t.Errorf("it waited: %t, error %v", waits, err)
		}
		s.end(first[0])
		s.expect("next")
	})
}
