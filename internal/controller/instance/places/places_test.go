package places

import (
	"fmt"
	"slices"
	"testing"
)

// take has as many hosts of a kind as are given ask for a place, and returns how many have got one.
func take(p *Places, kind Kind, prefix string, count int) (got int) {
	for i := range count {
		if p.Take(fmt.Sprintf("%s-%d", prefix, i), kind) {
			got++
		}
	}
	return got
}

func TestKindsOfHosts(t *testing.T) {
	for _, c := range []struct {
		wasNode, slow bool
		want          Kind
	}{{true, false, Proven}, {true, true, Slow}, {false, true, Slow}, {false, false, New}} {
		if got := KindOf(c.wasNode, c.slow); got != c.want {
			t.Errorf("was a node: %t, slow: %t: kind %d, want %d", c.wasNode, c.slow, got, c.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	t.Run("slow hosts have a part of the places, new ones all others, and proven ones need none", func(t *testing.T) {
		var p Places
		if got := take(&p, Slow, "slow", 1000); got != slowLimit {
			t.Errorf("%d slow hosts are worked on", got)
		}
		if got := take(&p, New, "new", 1000); got != unprovenLimit-slowLimit {
			t.Errorf("%d new hosts are worked on", got)
		}
		if got := take(&p, Proven, "proven", 1000); got != 1000 {
			t.Errorf("%d proven hosts are worked on", got)
		}
	})
	t.Run("new hosts have all places when no slow ones are there", func(t *testing.T) {
		var p Places
		if got := take(&p, New, "new", 1000); got != unprovenLimit {
			t.Errorf("%d new hosts are worked on", got)
		}
	})
	t.Run("who waits is woken in order, new hosts first, and finds a place", func(t *testing.T) {
		var p Places
		var woken []string
		p.Wake(func(instance string) { woken = append(woken, instance) })
		take(&p, Slow, "slow", slowLimit+3)
		take(&p, New, "new", unprovenLimit-slowLimit+1)
		for _, ended := range []string{"slow-0", "slow-1", "slow-2"} {
			p.Return(ended)
		}
		want := []string{fmt.Sprintf("new-%d", unprovenLimit-slowLimit), fmt.Sprintf("slow-%d", slowLimit),
			fmt.Sprintf("slow-%d", slowLimit+1)}
		if !slices.Equal(woken, want) {
			t.Errorf("woken are %v, want %v", woken, want)
		}
		if p.Take("late", New) {
			t.Error("another has a place that was given away")
		}
		if !p.Take(want[0], New) {
			t.Error("one that was woken has no place")
		}
	})
	t.Run("one that goes while it waits, or before it has come, leaves its place to the next", func(t *testing.T) {
		var p Places
		var woken []string
		p.Wake(func(instance string) { woken = append(woken, instance) })
		take(&p, Slow, "slow", slowLimit)
		for _, instance := range []string{"a", "b", "c"} {
			p.Take(instance, Slow)
		}
		p.Return("a") // it waited
		p.Return("slow-0")
		p.Return("b") // it was woken
		if !slices.Equal(woken, []string{"b", "c"}) {
			t.Errorf("woken are %v", woken)
		}
	})
	t.Run("one that waits twice has one place", func(t *testing.T) {
		var p Places
		take(&p, Slow, "slow", slowLimit)
		p.Take("a", Slow)
		p.Take("a", Slow)
		p.Return("slow-0")
		if len(p.waiting) != 0 || len(p.held) != slowLimit {
			t.Errorf("%d wait, %d are worked on", len(p.waiting), len(p.held))
		}
	})
	t.Run("one that has become a proven host gives its place back", func(t *testing.T) {
		var p Places
		take(&p, Slow, "slow", slowLimit)
		if !p.Take("slow-0", Proven) || !p.Take("next", Slow) {
			t.Error("its place is not free")
		}
	})
}
