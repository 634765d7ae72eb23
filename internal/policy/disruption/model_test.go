package disruption

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// worldNode is the true state of a Windows host.
type worldNode struct {
	Node
	// set is the MachineSet, empty for a listed host. made, serving and deleted are the progress of the Machine; made
	// means that the Machine runs.
	set                       string
	created, serving, deleted bool
	failed                    bool // its Machine is in phase Failed
	begun                     bool // a change of the host was interrupted
}

// worldDisruption is a disruption that is truly in progress, regardless of the list.
type worldDisruption struct {
	node    *worldNode
	since   time.Time
	cause   v1alpha1.DisruptionCause
	version string
	// configuration is the new configuration of the node, if any.
	configuration string
	replaces      bool
	released      bool
	successor     *worldNode
}

// world is a cluster with its MachineSets, listed hosts, policy, and operators that start and stop.
type world struct {
	now      time.Time
	spec     v1alpha1.WindowsDisruptionPolicySpec
	settings Settings
	target   string
	// configuration is the desired configuration of all nodes.
	configuration string
	createdCount  int
	replicas      map[string]int
	nodes         []*worldNode
	list          []v1alpha1.Disruption
	truth         []*worldDisruption
}

func newWorld(t *rapid.T) *world {
	w := &world{now: noon, target: versionAfter, configuration: "kubelet=1", replicas: map[string]int{}}
	w.editPolicy(t)
	for i := range rapid.IntRange(0, 3).Draw(t, "sets") {
		name := fmt.Sprintf("set%d", i)
		w.replicas[name] = rapid.IntRange(1, 4).Draw(t, "replicas")
		for range w.replicas[name] {
			w.addNode(name, MachineSetPool(name))
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "hosts") {
		w.addNode("", rapid.SampledFrom([]string{"Hosts", "Hosts/east"}).Draw(t, "pool"))
	}
	for _, n := range w.nodes {
		n.created, n.serving, n.Ready, n.Since, n.Version = true, true, true, w.now.Add(-24*time.Hour), versionBefore
		n.Configuration = rapid.SampledFrom([]string{"", w.configuration}).Draw(t, "configuration")
	}
	return w
}

func (w *world) addNode(set, pool string) *worldNode {
	w.createdCount++
	name := fmt.Sprintf("n%d", w.createdCount)
	n := &worldNode{Node: Node{Instance: name, UID: types.UID("uid-" + name), Node: "node-" + name, Pool: pool,
		Since: w.now}, set: set}
	w.nodes = append(w.nodes, n)
	return n
}

// editPolicy simulates an administrator.
func (w *world) editPolicy(t *rapid.T) {
	limit := func() *intstr.IntOrString {
		v := intstr.Parse(rapid.SampledFrom([]string{"1", "2", "3", "30%", "50%"}).Draw(t, "limit"))
		return &v
	}
	w.spec = v1alpha1.WindowsDisruptionPolicySpec{
		Paused:         rapid.IntRange(0, 9).Draw(t, "paused") == 0,
		MaxUnavailable: limit(),
		CanarySoak:     newDuration(rapid.SampledFrom([]time.Duration{0, 10 * time.Minute, 2 * time.Hour}).Draw(t, "soak")),
		StopOnFailure:  rapid.IntRange(0, 3).Draw(t, "stop") == 0,
	}
	if rapid.Bool().Draw(t, "pools") {
		w.spec.Pools = []v1alpha1.DisruptionPool{{Name: "Hosts", MaxUnavailable: limit()},
			{Name: "MachineSet/set0", MaxUnavailable: limit(), Paused: rapid.Bool().Draw(t, "paused")}}
	}
	if rapid.IntRange(0, 3).Draw(t, "windows") == 0 {
		w.spec.MaintenanceWindows = []v1alpha1.MaintenanceWindow{{Schedule: "0 */6 * * *",
			Duration: metav1.Duration{Duration: 3 * time.Hour}, TimeZone: "Europe/Paris"}}
	}
	w.settings, _ = Parse(w.spec)
}

// nodePool returns the state that the gate reads.
func (w *world) nodePool() NodePool {
	pool := NodePool{Disruptions: slices.Clone(w.list)}
	for _, n := range w.nodes {
		if n.serving {
			pool.Nodes = append(pool.Nodes, n.Node)
		}
	}
	for name, replicas := range w.replicas {
		set := MachineSet{Name: name, Replicas: replicas}
		for _, n := range w.listMachines(name) {
			switch {
			case n.deleted:
				set.Missing++
				continue
			case n.failed:
				set.Failed++
			case !n.created:
				set.Missing++
			case n.serving && n.Ready:
				set.Running++
			}
			set.Staying = append(set.Staying, n.Instance)
		}
		set.Missing += max(0, replicas-len(set.Staying))
		pool.MachineSets = append(pool.MachineSets, set)
	}
	return pool
}

func (w *world) listMachines(set string) []*worldNode {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(n *worldNode) bool { return n.set != set })
}

func (w *world) hasNode(n *worldNode) bool { return slices.Contains(w.nodes, n) }

func (w *world) removeNode(removed *worldNode) {
	w.nodes = slices.DeleteFunc(slices.Clone(w.nodes), func(n *worldNode) bool { return n == removed })
}

func (w *world) setReady(n *worldNode, ready bool) {
	if n.Ready != ready {
		n.Ready, n.Since = ready, w.now
	}
}

// advanceMachineSets advances each MachineSet by one step. If the world is not healthy, some new Machines never work.
func (w *world) advanceMachineSets(t *rapid.T, healthy bool) {
	for set, replicas := range w.replicas {
		staying := 0
		for _, n := range w.listMachines(set) {
			switch {
			case n.deleted:
				w.removeNode(n)
				continue
			case n.failed:
			case !n.created:
				if n.created = true; !healthy && rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
					n.failed, n.Gone = true, true
				}
			case !n.serving && (healthy || rapid.IntRange(0, 3).Draw(t, "joins") > 0):
				n.serving, n.Version, n.Configuration = true, w.target, w.configuration
				w.setReady(n, true)
			}
			if staying++; staying > replicas { // the set was scaled down
				n.deleted, n.Gone = true, true
			}
		}
		for ; staying < replicas; staying++ {
			n := w.addNode(set, MachineSetPool(set))
			if d, found := findFirst(w.truth, func(d *worldDisruption) bool {
				return d.node.set == set && d.replaces && !d.released && d.successor == nil && !w.hasNode(d.node)
			}); found {
				d.successor = n
			}
		}
	}
	w.finalizeEnded() // a replaced Machine of a set that was scaled down has no successor, now or later
}

// isInProgress reports whether a disruption is truly in progress within its deadline.
func (w *world) isInProgress(d *worldDisruption) bool {
	switch {
	case d.released || w.now.Sub(d.since) >= w.settings.FailureDeadline:
		return false
	case !d.replaces:
		return w.hasNode(d.node) && !d.node.Gone
	case w.hasNode(d.node):
		return true
	case d.successor != nil && (d.successor.serving || !w.hasNode(d.successor)):
		return false
	}
	serving := 0
	for _, n := range w.listMachines(d.node.set) {
		if d.successor != nil && d.successor.failed && n.serving && n.Version == d.version && !n.Since.Before(d.since) {
			return false // another Machine has replaced it
		}
		if n.serving && !n.deleted {
			serving++
		}
	}
	return serving < w.replicas[d.node.set]
}

// finalizeEnded makes the end of disruptions final: Machines that a set creates when scaled up later are no successors.
func (w *world) finalizeEnded() {
	for _, d := range w.truth {
		d.released = d.released || !w.isInProgress(d)
	}
}

func (w *world) findDisruption(n *worldNode) *worldDisruption {
	d, _ := findFirst(w.truth, func(d *worldDisruption) bool { return d.node == n && w.isInProgress(d) })
	return d
}

// pruneEntries removes ended entries from the list, as the gate does.
func (w *world) pruneEntries() {
	view := w.nodePool()
	w.list = slices.DeleteFunc(slices.Clone(w.list), func(d v1alpha1.Disruption) bool {
		ended, _, _ := Ended(d, view, w.settings, w.now)
		return ended
	})
}

// requestDisruption simulates an operator that requests a disruption, then checks and records the decision.
func (w *world) requestDisruption(t *rapid.T, n *worldNode, cause v1alpha1.DisruptionCause, replaces bool) *worldDisruption {
	request := Request{Instance: n.Instance, UID: n.UID, Cause: cause, Version: w.target, Configuration: w.configuration,
		HostChanged: n.begun, Replaces: replaces}
	got := Allow(w.nodePool(), request, w.settings, w.now)
	if got.Allowed == (got.Reason != "") || got.Message == "" || got.After < 0 {
		t.Fatalf("the answer is %+v", got)
	}
	if !got.Allowed {
		return nil
	}
	entry := v1alpha1.Disruption{Instance: n.Instance, InstanceUID: n.UID, Node: n.Node.Node, Pool: n.Pool, Cause: cause,
		Version: w.target, ConfigurationDigest: ConfigurationOf(request), Since: metav1.NewTime(w.now)}
	if replaces {
		entry.Machine = n.Instance
	}
	before := w.findDisruption(n)
	if before == nil {
		w.checkGrant(t, n, request)
	} else { // this operator continues the disruption
		w.checkContinuation(t, before, request)
		entry.Since = metav1.NewTime(before.since)
		if entry.ConfigurationDigest == "" {
			entry.ConfigurationDigest = before.configuration
		}
		before.cause, before.version, before.configuration, before.replaces = cause, w.target, entry.ConfigurationDigest, replaces
	}
	w.list = append(slices.DeleteFunc(slices.Clone(w.list), func(d v1alpha1.Disruption) bool {
		return d.Instance == n.Instance
	}), entry)
	if before != nil {
		return before
	}
	d := &worldDisruption{node: n, since: entry.Since.Time, cause: cause, version: w.target,
		configuration: entry.ConfigurationDigest, replaces: replaces}
	w.truth = append(w.truth, d)
	return d
}

// releaseDisruption ends a disruption by the operator that holds it.
func (w *world) releaseDisruption(d *worldDisruption) {
	d.released = true
	w.list = slices.DeleteFunc(slices.Clone(w.list), func(e v1alpha1.Disruption) bool {
		return e.Instance == d.node.Instance
	})
}

func (w *world) failChange(n *worldNode, cause v1alpha1.DisruptionCause, reason string) {
	n.begun = false // it was rolled back
	n.Failure = &v1alpha1.FailedChange{Cause: cause, Version: w.target, ConfigurationDigest: w.configuration, Reason: reason,
		DrainTimedOut: reason == v1alpha1.ReasonDrainTimedOut, Time: metav1.NewTime(w.now)}
}

func (w *world) describeWorld() string {
	text := fmt.Sprintf("%s\n%+v\n", w.now, w.nodePool())
	for _, d := range w.truth {
		text += fmt.Sprintf("%s (%s, replaced: %v) since %s lasts: %v, released: %v, successor %+v\n", d.node.Instance,
			d.cause, d.replaces, d.since, w.isInProgress(d), d.released, d.successor)
	}
	return text
}
