package disruption

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// hostClocks are the offsets of a host's clock.
var hostClocks = map[string]time.Duration{
	"a right clock":                      0,
	"a clock that shows local time":      2 * time.Hour,
	"a clock two hours behind":           -2 * time.Hour,
	"a clock that was never set":         -30 * 365 * 24 * time.Hour,
	"a clock in the year 2096":           70 * 365 * 24 * time.Hour,
	"a clock an instant before the time": -time.Second,
}

// watched is a gate that observes the nodes of a case from time to time.
type watched struct {
	*disruptionCase
	now     time.Time
	records []v1alpha1.ObservedNode
	resumed bool
}

// observeAfter observes all nodes after the given time.
func (w *watched) observeAfter(after time.Duration) {
	w.now = w.now.Add(after)
	pool := w.NodePool
	for i := range pool.Nodes {
		if n := &pool.Nodes[i]; !n.Ready {
			n.Since = time.Time{} // as the reader returns it
		}
	}
	w.Nodes, w.records = Observe(pool, w.records, w.resumed, w.settings, w.now)
	w.resumed = false
}

// reportReady simulates a kubelet that reports a change with a clock that is ahead.
func (w *watched) reportReady(instance string, ready bool, ahead time.Duration) {
	n := w.findNode(instance)
	n.Ready, n.Reported = ready, ptr.To(metav1.NewTime(w.now.Add(ahead)))
}

func (w *watched) expectAllowed(t *testing.T, want bool, when string) {
	t.Helper()
	if got := Allow(w.NodePool, w.request, w.settings, w.now); got.Allowed != want {
		t.Errorf("%s: %+v", when, got)
	}
}

// A node that is not Ready counts from the operator's observation until failureDeadline has passed.
func TestObserve_HostClockDoesNotAffectSlots(t *testing.T) {
	for name, ahead := range hostClocks {
		t.Run(name, func(t *testing.T) {
			w := &watched{disruptionCase: newDisruptionCase(), now: noon, resumed: true}
			w.setRequest("h1", v1alpha1.CauseReboot)
			w.observeAfter(0)
			w.expectAllowed(t, true, "all are Ready")
			w.reportReady("h2", false, ahead)
			w.observeAfter(time.Second)
			w.expectAllowed(t, false, "a node has just become NotReady")
			w.observeAfter(w.settings.FailureDeadline - time.Second)
			w.expectAllowed(t, false, "shortly before the deadline")
			w.observeAfter(time.Second)
			w.expectAllowed(t, true, "at the deadline, by the operator's clock")
			w.observeAfter(30 * 24 * time.Hour)
			w.expectAllowed(t, true, "a month later")
		})
	}
}

//
func TestObserve_HostClockDoesNotDelayUpgrade(t *testing.T) {
	for name, ahead := range hostClocks {
		for _, soak := range []time.Duration{0, time.Hour} {
			t.Run(name+", soak "+soak.String(), func(t *testing.T) {
				w := &watched{disruptionCase: newDisruptionCase(), now: noon, resumed: true}
				w.settings.CanarySoak = soak
				w.observeAfter(0)
				canary := w.findNode("a3") // the operator has just verified it
				canary.Version, canary.Since = versionAfter, noon
				w.reportReady("a3", true, ahead)
				w.observeAfter(0)
				w.expectAllowed(t, soak == 0, "the first node is Ready, and another pool asks")
				w.observeAfter(soak)
				w.expectAllowed(t, true, "it has been Ready for canarySoak")

				w.reportReady("a3", false, ahead)
				w.observeAfter(time.Minute)
				w.reportReady("a3", true, ahead)
				w.observeAfter(time.Minute)
				w.expectAllowed(t, soak == 0, "it was not Ready for a minute")
				w.observeAfter(soak)
				w.expectAllowed(t, true, "it has been Ready for canarySoak again")
			})
		}
	}
}

func TestObserve_RestartedOperatorKeepsNotReadyTime(t *testing.T) {
	ready, notReady := true, false
	for name, c := range map[string]struct {
		away []bool // states that the kubelet reports while no operator runs
		free bool   // the node no longer counts
	}{
		"a node that is still not Ready counts from when it was first seen so":   {free: true},
		"a node that was Ready meanwhile counts from now":                        {away: []bool{ready, notReady}},
		"a node that has reported no change, only another reason, counts anew":   {away: []bool{notReady}},
		"a node that has come back takes up no place, as far as anybody can say": {away: []bool{ready}, free: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watched{disruptionCase: newDisruptionCase(), now: noon, resumed: true}
			w.setRequest("h1", v1alpha1.CauseReboot)
			w.reportReady("h2", false, time.Hour)
			w.observeAfter(0)
			w.now, w.resumed = w.now.Add(w.settings.FailureDeadline), true
			for _, state := range c.away {
				w.reportReady("h2", state, time.Hour+time.Minute)
			}
			w.observeAfter(0)
			w.expectAllowed(t, c.free, "at the first look")
			w.observeAfter(w.settings.FailureDeadline)
			w.expectAllowed(t, true, "after failureDeadline")
		})
	}
}

// In a running operator, a different time from the same kubelet is not another failure.
func TestObserve_RedatedFailureHoldsNoSlotForever(t *testing.T) {
	w := &watched{disruptionCase: newDisruptionCase(), now: noon, resumed: true}
	w.setRequest("h1", v1alpha1.CauseReboot)
	for range 4 {
		w.reportReady("h2", false, 0)
		w.observeAfter(w.settings.FailureDeadline / 3)
	}
	w.expectAllowed(t, true, "past the deadline")
}

func TestObserve_RecordsReadinessChanges(t *testing.T) {
	w := &watched{disruptionCase: newDisruptionCase(), now: noon, resumed: true}
	w.settings.CanarySoak = time.Hour
	w.observeAfter(0)
	if len(w.records) != 0 {
		t.Errorf("nodes that were always Ready are recorded: %+v", w.records)
	}
	w.reportReady("h2", false, 0)
	w.observeAfter(0)
	w.reportReady("h2", true, 0)
	w.observeAfter(time.Minute)
	if len(w.records) != 1 || !w.records[0].Ready || !w.records[0].Since.Time.Equal(w.now) {
		t.Errorf("a node that is Ready again is recorded as %+v", w.records)
	}
	w.observeAfter(time.Hour)
	if len(w.records) != 0 {
		t.Errorf("after canarySoak it is recorded as %+v", w.records)
	}

	w.reportReady("h2", false, 0)
	w.observeAfter(0)
	w.findNode("h2").UID = "made-anew"
	w.observeAfter(time.Minute)
	if len(w.records) != 1 || !w.records[0].Since.Time.Equal(w.now) {
		t.Errorf("an instance that was made anew has the record of the former one: %+v", w.records)
	}
	w.now = noon.Add(-time.Hour)
	w.observeAfter(0)
	if len(w.records) != 1 || w.records[0].Since.After(w.now) || w.findNode("h2").Since.After(w.now) {
		t.Errorf("the operator's clock was set back, and the record is %+v", w.records)
	}
	w.Nodes = slices.DeleteFunc(w.Nodes, func(n Node) bool { return n.Instance == "h2" })
	w.observeAfter(0)
	if len(w.records) != 0 {
		t.Errorf("a node that is gone is recorded as %+v", w.records)
	}
}

// A Node that still has the operator's start-up taint has not been Ready since its creation. That time is from the
// API server.
func TestObserve_UnverifiedNodeNotReadySinceCreation(t *testing.T) {
	nodes, records := Observe(NodePool{Nodes: []Node{{Instance: "h1", UID: "uid", Since: noon.Add(-time.Hour)}}}, nil, true,
		newDisruptionCase().settings, noon)
	if !nodes[0].Since.Equal(noon.Add(-time.Hour)) || len(records) != 0 {
		t.Errorf("%+v, recorded are %+v", nodes, records)
	}
}
