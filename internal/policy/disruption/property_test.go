package disruption

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// workOnNode simulates an operator that disrupts a node and may be killed at any point.
func (w *world) workOnNode(t *rapid.T, d *worldDisruption) {
	switch rapid.SampledFrom([]string{"killed before", "killed amid", "does well", "fails", "drain times out",
		"unreachable"}).Draw(t, "work") {
	case "killed before":
	case "does well":
		w.succeedChange(d)
	case "killed amid", "unreachable":
		if d.replaces {
			d.node.deleted = true
			return
		}
		d.node.begun = true
		w.setReady(d.node, rapid.Bool().Draw(t, "goes on to work"))
	case "fails":
		w.failChange(d.node, d.cause, v1alpha1.ReasonChangeFailed)
		w.releaseDisruption(d)
	case "drain times out":
		w.failChange(d.node, d.cause, v1alpha1.ReasonDrainTimedOut)
		w.releaseDisruption(d)
	}
}

func (w *world) succeedChange(d *worldDisruption) {
	d.node.begun = false
	switch {
	case d.replaces:
		d.node.deleted = true
		return
	case d.cause == v1alpha1.CauseRemoval:
		w.removeNode(d.node)
	case d.cause != v1alpha1.CauseUpgrade && d.node.Version != w.target:
		w.setReady(d.node, true)
	default:
		d.node.Version, d.node.Failure = w.target, nil
		if d.configuration != "" {
			d.node.Configuration = d.configuration
			d.node.Since = w.now
		}
		w.setReady(d.node, true)
	}
	w.releaseDisruption(d)
}

// simulateEvent simulates any other event.
func (w *world) simulateEvent(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 25).Draw(t, "minutes")) * time.Minute)
	switch rapid.SampledFrom([]string{"policy", "scale", "version", "settings", "host", "nothing"}).Draw(t, "what") {
	case "policy":
		w.editPolicy(t)
	case "scale":
		if len(w.replicas) > 0 {
			name := fmt.Sprintf("set%d", rapid.IntRange(0, len(w.replicas)-1).Draw(t, "set"))
			w.replicas[name] = rapid.IntRange(0, 4).Draw(t, "replicas")
		}
	case "version":
		w.target = rapid.SampledFrom([]string{versionAfter, "12.2.0"}).Draw(t, "version")
	case "settings":
		w.configuration = rapid.SampledFrom([]string{"kubelet=1", "kubelet=2", "kubelet=3", ""}).Draw(t, "configuration")
	case "host":
		if rapid.Bool().Draw(t, "new") {
			n := w.addNode("", "Hosts")
			n.created, n.serving, n.Ready, n.Version, n.Configuration = true, true, true, w.target, w.configuration
		}
	}
}

// simulateNodeEvent simulates an event of a node.
func (w *world) simulateNodeEvent(t *rapid.T, n *worldNode) {
	switch rapid.SampledFrom([]string{"breaks", "breaks for good", "mends", "mended by an administrator",
		"is taken out"}).Draw(t, "befalls") {
	case "breaks":
		w.setReady(n, false)
	case "breaks for good":
		w.setReady(n, false)
		n.Gone, n.failed = true, n.set != ""
	case "mends":
		if !n.Gone && n.serving {
			w.setReady(n, true)
		}
	case "mended by an administrator":
		n.Failure = nil
	case "is taken out":
		if n.set == "" {
			w.removeNode(n)
		} else {
			n.deleted, n.Gone = true, true
		}
	}
}

func (w *world) drawNode(t *rapid.T) *worldNode {
	if len(w.nodes) == 0 {
		return nil
	}
	return w.nodes[rapid.IntRange(0, len(w.nodes)-1).Draw(t, "node")]
}

func (w *world) runStep(t *rapid.T) {
	n := w.drawNode(t)
	switch rapid.SampledFrom([]string{"ask", "ask", "ask", "cloud", "happen", "befall", "prune"}).Draw(t, "event") {
	case "ask":
		if n == nil || !n.serving || n.deleted || n.Gone {
			return
		}
		causes := []v1alpha1.DisruptionCause{v1alpha1.CauseUpgrade, v1alpha1.CauseUpgrade, v1alpha1.CauseReboot,
			v1alpha1.CauseConfiguration, v1alpha1.CauseKeyChange}
		if !n.Ready {
			causes = append(causes, v1alpha1.CauseRepair)
		}
		if n.set == "" {
			causes = append(causes, v1alpha1.CauseRemoval)
		}
		cause := rapid.SampledFrom(causes).Draw(t, "cause")
		if cause == v1alpha1.CauseUpgrade && n.Version == w.target {
			return
		}
		if d := w.requestDisruption(t, n, cause, n.set != "" && cause == v1alpha1.CauseUpgrade &&
			rapid.Bool().Draw(t, "replace")); d != nil {
			w.workOnNode(t, d)
		}
	case "cloud":
		w.advanceMachineSets(t, false)
	case "happen":
		w.simulateEvent(t)
	case "befall":
		if n != nil {
			w.simulateNodeEvent(t, n)
		}
	case "prune":
		w.pruneEntries()
	}
	w.finalizeEnded()
	s := Summarize(w.nodePool(), w.settings, w.target, w.configuration, w.now)
	if s.Text == "" || s.Updated > s.Nodes || s.Behind > s.Updated || s.After < 0 {
		t.Fatalf("the summary is %+v", s)
	}
}

// fixAll fixes everything that an administrator can fix, including deletion of Machines that never became Ready. Hosts
// that no longer exist are not restored.
func (w *world) fixAll() {
	w.spec.Paused = false
	for i := range w.spec.Pools {
		w.spec.Pools[i].Paused = false
	}
	w.settings, _ = Parse(w.spec)
	for _, n := range w.nodes {
		n.Failure = nil
		n.deleted = n.deleted || n.failed && !n.serving
		if n.serving && !n.Gone {
			w.setReady(n, true)
		}
	}
}

// upgradeAll runs an operator on working nodes. It returns the nodes that did not reach the version and the settings.
func (w *world) upgradeAll(t *rapid.T) (left []*worldNode) {
	arrived := func(n *worldNode) bool {
		return n.Version == w.target && (w.configuration == "" || n.Configuration == w.configuration) && n.serving
	}
	for range 400 {
		w.now = w.now.Add(10 * time.Minute)
		w.advanceMachineSets(t, true)
		w.pruneEntries()
		left = slices.DeleteFunc(slices.Clone(w.nodes), func(n *worldNode) bool {
			return n.Gone || arrived(n)
		})
		if len(left) == 0 {
			return nil
		}
		for _, n := range left {
			if !n.serving || n.deleted {
				continue
			}
			cause, replaces := v1alpha1.CauseConfiguration, false
			if n.Version != w.target {
				cause, replaces = v1alpha1.CauseUpgrade, n.set != "" && rapid.Bool().Draw(t, "replace")
			}
			if d := w.requestDisruption(t, n, cause, replaces); d != nil {
				w.succeedChange(d)
			}
		}
	}
	return left
}

// For any order of events, with operators killed at any moment and changing policies, no more nodes are disrupted
// than the limits allow, and one Machine of each set stays running. No version or settings reach further nodes before
// one node has verified them. Once nodes work again, all existing nodes reach both.
func TestDisruption_LimitsHoldForAnyEventOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			w.runStep(t)
		}
		w.fixAll()
		for _, n := range w.upgradeAll(t) {
			request := Request{Instance: n.Instance, UID: n.UID, Cause: n.causeOfChange(w.target, w.configuration), Version: w.target,
				Configuration: w.configuration}
			t.Errorf("%+v is left: %+v\n%+v", n, Allow(w.nodePool(), request, w.settings, w.now), w.nodePool())
		}
	})
}

// A version that works on no node is tried on one node only, regardless of the number of attempts.
func TestCanary_BadVersionTriedOnOneNode(t *testing.T) {
	badIsTriedOnOneNode(t, v1alpha1.CauseUpgrade)
}

// The same holds for cluster settings that break every node.
func TestCanary_BadSettingsTriedOnOneNode(t *testing.T) {
	badIsTriedOnOneNode(t, v1alpha1.CauseConfiguration)
}

func badIsTriedOnOneNode(t *testing.T, cause v1alpha1.DisruptionCause) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		if len(w.nodes) == 0 {
			return
		}
		w.fixAll()
		for _, n := range w.nodes {
			if cause == v1alpha1.CauseConfiguration {
				n.Version, n.Configuration = w.target, rapid.SampledFrom([]string{"", "kubelet=0"}).Draw(t, "configuration")
			}
		}
		touched := map[string]bool{}
		for range 100 {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "minutes")) * time.Minute)
			w.pruneEntries()
			n := w.drawNode(t)
			if n == nil || !n.serving || n.deleted || n.Gone {
				continue
			}
			replaces := cause == v1alpha1.CauseUpgrade && n.set != "" && w.replicas[n.set] > 0 && rapid.Bool().Draw(t, "replace")
			d := w.requestDisruption(t, n, cause, replaces)
			if d == nil {
				continue
			}
			touched[n.Instance] = true
			switch {
			case d.replaces: // its successor is never created
				w.removeNode(n)
			case rapid.Bool().Draw(t, "rolled back"):
				w.failChange(n, d.cause, v1alpha1.ReasonChangeFailed)
				w.releaseDisruption(d)
			default:
				w.setReady(n, false)
			}
		}
		if len(touched) > 1 {
			t.Fatalf("touched are %v", touched)
		}
		w.now = w.now.Add(w.settings.FailureDeadline)
		if s := Summarize(w.nodePool(), w.settings, w.target, w.configuration, w.now); len(touched) == 1 &&
			(s.Failed != 1 || !s.Stopped && s.Nodes > 1) {
			t.Fatalf("the summary is %+v", s)
		}
	})
}

// A node that never recovers blocks no other node after failureDeadline has passed and the pool has verified the
// version.
func TestDisruption_UnrecoveredNodeBlocksNoOtherNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.spec.StopOnFailure = false
		w.fixAll()
		for set, replicas := range w.replicas { // in a set of two, the other Machine is the last available one and must stay
			w.replicas[set] = max(3, replicas)
		}
		for range 3 {
			w.advanceMachineSets(t, true)
		}
		for _, pool := range []string{"Hosts", "Hosts/east", "MachineSet/set0", "MachineSet/set1", "MachineSet/set2"} {
			if n, found := findFirst(w.nodes, func(n *worldNode) bool { return n.Pool == pool }); found {
				n.Version, n.Configuration = w.target, w.configuration
			}
		}
		bad := w.drawNode(t)
		if bad == nil || bad.Version == w.target {
			return
		}
		w.list = append(w.list, v1alpha1.Disruption{Instance: bad.Instance, InstanceUID: bad.UID, Node: bad.Node.Node,
			Pool: bad.Pool, Cause: v1alpha1.CauseUpgrade, Version: w.target})
		w.list[0].Since.Time = w.now
		w.setReady(bad, false)
		if rapid.Bool().Draw(t, "told") {
			w.failChange(bad, v1alpha1.CauseUpgrade, v1alpha1.ReasonRollbackIncomplete)
		}
		for range 400 {
			w.now = w.now.Add(10 * time.Minute)
			w.advanceMachineSets(t, true)
			w.pruneEntries()
			for _, n := range w.nodes {
				if n == bad || n.Version == w.target || n.deleted {
					continue
				}
				if d := w.requestDisruption(t, n, v1alpha1.CauseUpgrade, false); d != nil {
					w.succeedChange(d)
				}
			}
		}
		for _, n := range w.nodes {
			if n != bad && n.Version != w.target {
				t.Fatalf("%s waits forever for %s: %+v", n.Instance, bad.Instance, w.nodePool())
			}
		}
	})
}
