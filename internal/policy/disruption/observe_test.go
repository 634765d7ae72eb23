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

// look observes all nodes after the given time.
func (w *watched) look(after time.Duration) {
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

// reports simulates a kubelet that reports a change with a clock that is ahead.
func (w *watched) reports(instance string, ready bool, ahead time.Duration) {
	n := w.node(instance)
	n.Ready, n.Reported = ready, ptr.To(metav1.NewTime(w.now.Add(ahead)))
}

func (w *watched) allows(t *testing.T, want bool, when string) {
	t.Helper()
	if got := Allow(w.NodePool, w.request, w.settings, w.now); got.Allowed != want {
		t.Errorf("%s: %+v", when, got)
	}
}

// A node that is not Ready counts from the operator's observation until failureDeadline has passed.
func TestAHostsClockNeitherFreesNorKeepsAPlace(t *testing.T) {
	for name, ahead := range hostClocks {
		t.Run(name, func(t *testing.T) {
			w := &watched{disruptionCase: newDisruptionCase(), now: noon, resumed: true}
			w.ask("h1", v1alpha1.CauseReboot)
			w.look(0)
			w.allows(t, true, "all are Ready")
			w.reports("h2", false, ahead)
			w.look(time.Second)
			w.allows(t, false, "a node has just become NotReady")
			w.look(w.settings.FailureDeadline - time.Second)
			w.allows(t, false, "shortly before the deadline")
			w.look(time.Second)
			w.allows(t, true, "at the deadline, by the operator's clock")
			w.look(30 * 24 * time.Hour)
			w.allows(t, true, "a month later")
		})
	}
}

//
func TestAHostsClockDoesNotHoldUpAnUpgrade(t *testing.T) {
	for name, ahead := range hostClocks {
		for _, soak := range []time.Duration{0, time.Hour} {
			t.Run(name+", soak "+soak.String(), func(t *testing.T) {
				w := &watched{disruptionCase: newDisruptionCase(), now: noon, resumed: true}
				w.settings.CanarySoak = soak
				w.look(0)
				canary := w.node("a3") // the operator has just verified it
				canary.Version, canary.Since = versionAfter, noon
				w.reports("a3", true, ahead)
				w.look(0)
				w.allows(t, soak == 0, "the first node is Ready, and another pool asks")
				w.look(soak)
				w.allows(t, true, "it has been Ready for canarySoak")

				w.reports("a3", false, ahead)
				w.look(time.Minute)
				w.reports("a3", true, ahead)
				w.look(time.Minute)
				w.allows(t, soak == 0, "it was not Ready for a minute")
				w.look(soak)
				w.allows(t, true, "it has been Ready for canarySoak again")
			})
		}
	}
}

func TestAnOperatorThatStartsKnowsSinceWhenANodeIsNotReady(t *testing.T) {
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
			w.ask("h1", v1alpha1.CauseReboot)
			w.reports("h2", false, time.Hour)
			w.look(0)
			w.now, w.resumed = w.now.Add(w.settings.FailureDeadline), true
			for _, state := range c.away {
				w.reports("h2", state, time.Hour+time.Minute)
			}
			w.look(0)
			w.allows(t, c.free, "at the first look")
			w.look(w.settings.FailureDeadline)
			w.allows(t, true, "after failureDeadline")
		})
	}
}

// In a running operator, a different time from the same kubelet is not another failure.
func TestAHostThatDatesItsFailureAnewTakesUpNoPlaceForever(t *testing.T) {
	w := &watched{disruptionCase: newDisruptionCase(), now: noon, resumed: true}
	w.ask("h1", v1alpha1.CauseReboot)
	for range 4 {
		w.reports("h2", false, 0)
		w.look(w.settings.FailureDeadline / 3)
	}
	w.allows(t, true, "past the deadline")
}

func TestRecordsOfNodes(t *testing.T) {
	w := &watched{disruptionCase: newDisruptionCase(), now: noon, resumed: true}
	w.settings.CanarySoak = time.Hour
	w.look(0)
	if len(w.records) != 0 {
		t.Errorf("nodes that were always Ready are recorded: %+v", w.records)
	}
	w.reports("h2", false, 0)
	w.look(0)
	w.reports("h2", true, 0)
	w.look(time.Minute)
	if len(w.records) != 1 || !w.records[0].Ready || !w.records[0].Since.Time.Equal(w.now) {
		t.Errorf("a node that is Ready again is recorded as %+v", w.records)
	}
	w.look(time.Hour)
	if len(w.records) != 0 {
		t.Errorf("after canarySoak it is recorded as %+v", w.records)
	}

	w.reports("h2", false, 0)
	w.look(0)
	w.node("h2").UID = "made-anew"
	w.look(time.Minute)
	if len(w.records) != 1 || !w.records[0].Since.Time.Equal(w.now) {
		t.Errorf("an instance that was made anew has the record of the former one: %+v", w.records)
	}
	w.now = noon.Add(-time.Hour)
	w.look(0)
	if len(w.records) != 1 || w.records[0].Since.After(w.now) || w.node("h2").Since.After(w.now) {
		t.Errorf("the operator's clock was set back, and the record is %+v", w.records)
	}
	w.Nodes = slices.DeleteFunc(w.Nodes, func(n Node) bool { return n.Instance == "h2" })
	w.look(0)
	if len(w.records) != 0 {
		t.Errorf("a node that is gone is recorded as %+v", w.records)
	}
}

// A Node that still has the operator's start-up taint has not been Ready since its creation. That time is from the
// API server.
func TestANodeThatWasNeverProvenIsNotReadySinceItIsThere(t *testing.T) {
	nodes, records := Observe(NodePool{Nodes: []Node{{Instance: "h1", UID: "uid", Since: noon.Add(-time.Hour)}}}, nil, true,
		newDisruptionCase().settings, noon)
	if !nodes[0].Since.Equal(noon.Add(-time.Hour)) || len(records) != 0 {
		t.Errorf("%+v, recorded are %+v", nodes, records)
	}
}
