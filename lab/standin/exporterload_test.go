package standin

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLoad_StaysInRangeAndMatchesTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Float64Range(0, 100).Draw(t, "least")
		most := least + rapid.Float64Range(0.1, 100).Draw(t, "room")
		l := loadOf(rapid.StringN(1, 15, -1).Draw(t, "host"), "cpu", least, most)
		at := time.Duration(rapid.Int64Range(0, int64(30*24*time.Hour)).Draw(t, "time"))
		if now := l.valueAt(at); now < least || now > most {
			t.Errorf("%v is not from %v to %v", now, least, most)
		}
		const second = time.Second
		// Between two scrapes a counter increases by the load, which changes little within a second.
		if grown, now := l.totalUntil(at+second)-l.totalUntil(at), l.valueAt(at); grown < 0 || grown < now-most*0.06 || grown > now+most*0.06 {
			t.Errorf("the total grows by %v within a second, and the load is %v", grown, now)
		}
		if l.totalUntil(0) != 0 {
			t.Errorf("the total begins with %v", l.totalUntil(0))
		}
	})
}

func TestLoad_DependsOnHostName(t *testing.T) {
	if loadOf("win-a", "cpu", 0, 1) == loadOf("win-b", "cpu", 0, 1) || loadOf("win-a", "cpu", 0, 1) != loadOf("win-a", "cpu", 0, 1) {
		t.Error("a load follows from the name of its host, and from no other")
	}
}
