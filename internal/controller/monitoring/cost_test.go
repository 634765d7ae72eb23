package monitoring_test

import (
	"math"
	"runtime"
	"testing"
)

func TestReconcile_CostOfThousandNodesIsBounded(t *testing.T) {
	f := newFixture(t)
	cached := f.Client
	versions := func() map[string]string {
		all := map[string]string{}
		for _, slice := range f.listSlices() {
			all[slice.Name] = slice.ResourceVersion
		}
		return all
	}
	have := func(count int) { f.Client = admins{cached, many{f.admin, count}} }
	have(999)
	f.reconcileAll()
	before := versions()
	t.Run("a join costs one slice", func(t *testing.T) {
		have(1000)
		writes, after := f.reconcileAll(), versions()
		changed := 0
		for name, version := range after {
			if before[name] != version {
				changed++
			}
		}
		if writes != 1 || changed != 1 || len(after) != 10 {
			t.Errorf("%d writes, %d of %d slices changed", writes, changed, len(after))
		}
	})
	t.Run("an idle hour costs nothing", func(t *testing.T) {
		for range 60 {
			if writes := f.reconcileAll(); writes > 0 {
				t.Fatalf("%d writes", writes)
			}
		}
	})
	t.Run("a look takes less than 10 MiB, and keeps none of it", func(t *testing.T) {
		measured := func() (held, allocated uint64) {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc, m.TotalAlloc
		}
		heldBefore, allocatedBefore := measured()
		least := uint64(math.MaxUint64) // other goroutines allocate in the meantime
		for range 3 {
			f.reconcileAll()
			_, now := measured()
			least, allocatedBefore = min(least, now-allocatedBefore), now
		}
		heldAfter, _ := measured()
		const limit = 10 << 20
		if least > limit {
			t.Errorf("a look takes %d KiB", least>>10)
		}
		if heldAfter > heldBefore+limit/10 {
			t.Errorf("a look keeps %d KiB", (heldAfter-heldBefore)>>10)
		}
	})
}
