package fleet

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestProgress_RecordsInstancesInDesiredState(t *testing.T) {
	p := &progress{isDesired: func(i *v1alpha1.WindowsInstance) bool { return i.Status.Version == "2" },
		since: map[string]time.Time{}, missing: map[string]*v1alpha1.WindowsInstance{}}
	at := time.Unix(0, 0)
	sendEvent := func(kind watch.EventType, name, version string) {
		at = at.Add(time.Second)
		p.recordEvent(kind, &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: v1alpha1.WindowsInstanceStatus{Version: version, Summary: "at " + version}}, at)
	}
	sendEvent(watch.Added, "a", "1")
	sendEvent(watch.Added, "b", "2")
	if len(p.since) != 1 || !strings.Contains(p.explainMissing(), "at 1") {
		t.Errorf("%v are as wanted; of the others:\n%s", p.since, p.explainMissing())
	}
	first := p.since["b"]
	sendEvent(watch.Modified, "b", "2")
	if !p.since["b"].Equal(first) {
		t.Error("an instance that stays as wanted is so since the last change")
	}
	sendEvent(watch.Modified, "b", "1")
	sendEvent(watch.Modified, "a", "2")
	if _, still := p.since["b"]; still || len(p.since) != 1 || len(p.missing) != 1 {
		t.Errorf("%v are as wanted; one has ceased to be, and another is", p.since)
	}
	sendEvent(watch.Deleted, "a", "2")
	sendEvent(watch.Deleted, "b", "1")
	if len(p.since)+len(p.missing) != 0 {
		t.Errorf("instances that are gone count: %v, %v", p.since, p.missing)
	}
}

func TestArrivals(t *testing.T) {
	p := Phase{Scenario: Join, Arrivals: []float64{1, 2, 4}}
	if at, known := p.Reached(2); !known || at != 2 {
		t.Errorf("two hosts after %g s, %t", at, known)
	}
	for _, hosts := range []int{0, 4} {
		if _, known := p.Reached(hosts); known {
			t.Errorf("%d hosts were never there", hosts)
		}
	}
	r := Result{Phases: []Phase{p}}
	if _, known := r.Phase(Join); !known {
		t.Error("the join was measured")
	}
	if _, known := r.Phase(Idle); known {
		t.Error("nothing else was measured")
	}
}
