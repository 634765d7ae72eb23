package disruption

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// checkGrant checks the invariants of an allowed disruption against the true state, not against the list.
func (w *world) checkGrant(t *rapid.T, n *worldNode, request Request) {
	free := request.Cause == v1alpha1.CauseRepair || request.Cause == v1alpha1.CauseRemoval
	all, pool := 1, 1
	for _, d := range w.truth {
		if d.node != n && w.isInProgress(d) {
			all++
			if d.node.Pool == n.Pool {
				pool++
			}
		}
	}
	for _, other := range w.nodes {
		if !free && other != n && other.Pool == n.Pool && other.serving && !other.Ready && !other.Gone &&
			w.findDisruption(other) == nil &&
			w.now.Sub(other.Since) < w.settings.FailureDeadline {
			all, pool = all+1, pool+1
		}
	}
	if !free {
		pool += w.countMissing(n.set)
	}
	limit, poolLimit := w.currentLimits(n.Pool)
	if all > limit || pool > poolLimit {
		t.Fatalf("%s of %s may be disturbed (%s): with it, %d of %d, and %d of %d of its pool: %s", n.Instance, n.Pool,
			request.Cause, all, limit, pool, poolLimit, w.describeWorld())
	}
	if !free {
		w.checkPolicy(t, n)
	}
	w.checkLast(t, n, request.Cause)
	w.checkCanaries(t, n, request.Cause)
}

// countMissing returns the number of Machines that a set lacks, without Machines being replaced.
func (w *world) countMissing(set string) int {
	if set == "" {
		return 0
	}
	staying, missing := 0, 0
	for _, n := range w.listMachines(set) {
		if n.deleted || !n.created && !n.failed {
			missing++
		}
		if !n.deleted {
			staying++
		}
	}
	missing += max(0, w.replicas[set]-staying)
	for _, d := range w.truth {
		if d.replaces && d.node.set == set && w.isInProgress(d) && (!w.hasNode(d.node) || d.node.deleted) {
			missing--
		}
	}
	return max(0, missing)
}

// checkContinuation checks the invariants when a disrupted node may be disrupted for another reason.
func (w *world) checkContinuation(t *rapid.T, before *worldDisruption, request Request) {
	was := before.cause == v1alpha1.CauseRepair || before.cause == v1alpha1.CauseRemoval
	if is := request.Cause == v1alpha1.CauseRepair || request.Cause == v1alpha1.CauseRemoval; was && !is {
		w.checkPolicy(t, before.node)
	}
	if request.Cause == v1alpha1.CauseUpgrade && (before.cause != request.Cause || before.version != request.Version) ||
		request.Configuration != "" && before.configuration != request.Configuration && !before.node.begun {
		w.checkCanaries(t, before.node, request.Cause)
	}
}

// currentLimits returns the limit of all nodes and of a pool. A percentage refers to at most all nodes that serve or
// are being replaced.
func (w *world) currentLimits(pool string) (limit, poolLimit int) {
	nodes := func(of func(string) bool) int {
		count := 0
		for _, n := range w.nodes {
			if of(n.Pool) && n.serving && !n.Gone {
				count++
			}
		}
		for _, d := range w.list {
			if of(d.Pool) && d.Machine != "" {
				count++
			}
		}
		return count
	}
	limit = w.settings.MaxUnavailable.Of(nodes(func(string) bool { return true }))
	poolLimit = limit
	if own := w.settings.Pools[pool].MaxUnavailable; own != nil {
		poolLimit = own.Of(nodes(func(p string) bool { return p == pool }))
	}
	return limit, poolLimit
}

func (w *world) checkPolicy(t *rapid.T, n *worldNode) {
	if w.spec.Paused || w.settings.Pools[n.Pool].Paused {
		t.Fatalf("%s may be disturbed in a pause", n.Instance)
	}
	if hour := (w.now.Hour() + 1) % 6; len(w.spec.MaintenanceWindows) > 0 && hour >= 3 { // winter time in Paris
		t.Fatalf("%s may be disturbed at %s, in no window", n.Instance, w.now)
	}
	for _, other := range w.nodes {
		if w.spec.StopOnFailure && other != n && other.serving && !other.Gone && other.Failure != nil &&
			other.Failure.Version == w.target && other.Failure.Reason != v1alpha1.ReasonDrainTimedOut {
			t.Fatalf("%s may be disturbed though %s has failed", n.Instance, other.Instance)
		}
	}
}

// checkLast checks that a Machine of the set stays in service.
func (w *world) checkLast(t *rapid.T, n *worldNode, cause v1alpha1.DisruptionCause) {
	if n.set == "" || !n.Ready || n.Gone || cause == v1alpha1.CauseRemoval {
		return
	}
	hasOther := false
	for _, other := range w.listMachines(n.set) {
		if other == n || other.failed || other.deleted {
			continue
		}
		if hasOther = true; other.serving && other.Ready && w.findDisruption(other) == nil {
			return
		}
	}
	if hasOther {
		t.Fatalf("%s may be disturbed, the last that works of %s: %+v", n.Instance, n.set, w.nodePool())
	}
}

// checkCanaries checks that a node receives no version, and no settings, before another node has verified them.
func (w *world) checkCanaries(t *rapid.T, n *worldNode, cause v1alpha1.DisruptionCause) {
	upgrade, configuration := v1alpha1.CauseUpgrade, v1alpha1.CauseConfiguration
	if cause == upgrade {
		w.checkCanary(t, n, func(o Node) bool { return o.Version == w.target },
			func(c v1alpha1.DisruptionCause, version, _ string) bool { return c == upgrade && version == w.target })
	}
	has := func(o Node) bool { return o.Version == w.target && o.Configuration == w.configuration }
	if (cause == upgrade || cause == configuration) && w.configuration != "" && !has(n.Node) {
		w.checkCanary(t, n, has, func(c v1alpha1.DisruptionCause, version, digest string) bool {
			return (c == upgrade || c == configuration) && version == w.target && digest == w.configuration
		})
	}
}

func (w *world) checkCanary(t *rapid.T, n *worldNode, has func(Node) bool,
	brings func(cause v1alpha1.DisruptionCause, version, configuration string) bool) {
	proven := func(pool string) bool {
		return slices.ContainsFunc(w.nodes, func(o *worldNode) bool {
			return o.serving && !o.Gone && (pool == "" || o.Pool == pool) && has(o.Node) && o.Ready &&
				w.now.Sub(o.Since) >= w.settings.CanarySoak
		})
	}
	failed := func(o *worldNode) bool {
		f := o.Failure
		return f != nil && f.Reason != v1alpha1.ReasonDrainTimedOut && brings(f.Cause, f.Version, f.ConfigurationDigest)
	}
	if proven(n.Pool) {
		return
	}
	scope := func(pool string) bool { return !proven("") || pool == n.Pool }
	for _, d := range w.truth {
		if d.node != n && brings(d.cause, d.version, d.configuration) && scope(d.node.Pool) && w.isInProgress(d) {
			t.Fatalf("%s may be changed while %s is, and nothing is proven", n.Instance, d.node.Instance)
		}
	}
	for _, o := range w.nodes {
		if o == n || !o.serving || o.Gone || !scope(o.Pool) {
			continue
		}
		if has(o.Node) {
			t.Fatalf("%s may be changed while %s has that, and has not proven it", n.Instance, o.Instance)
		}
		if failed(o) && !failed(n) {
			t.Fatalf("%s may be changed though %s has failed", n.Instance, o.Instance)
		}
	}
}
