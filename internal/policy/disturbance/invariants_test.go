package disturbance

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// checkGrant says what must be true when a node is allowed to be disturbed, from what really is, and not from the list.
func (w *world) checkGrant(t *rapid.T, n *worldNode, request Request) {
	free := request.Cause == v1alpha1.CauseRepair || request.Cause == v1alpha1.CauseRemoval
	all, pool := 1, 1
	for _, d := range w.truth {
		if d.node != n && w.lasts(d) {
			all++
			if d.node.Pool == n.Pool {
				pool++
			}
		}
	}
	for _, other := range w.nodes {
		if !free && other != n && other.Pool == n.Pool && other.serving && !other.Ready && !other.Gone &&
			w.disturbance(other) == nil &&
			w.now.Sub(other.Since) < w.settings.FailureDeadline {
			all, pool = all+1, pool+1
		}
	}
	if !free {
		pool += w.lacking(n.set)
	}
	limit, poolLimit := w.limits(n.Pool)
	if all > limit || pool > poolLimit {
		t.Fatalf("%s of %s may be disturbed (%s): with it, %d of %d, and %d of %d of its pool: %s", n.Instance, n.Pool,
			request.Cause, all, limit, pool, poolLimit, w.describe())
	}
	if !free {
		w.checkPolicy(t, n)
	}
	w.checkLast(t, n, request.Cause)
	if request.Cause == v1alpha1.CauseUpgrade {
		w.checkCanary(t, n)
	}
}

// lacking is how many Machines a set lacks, but for those that are being replaced.
func (w *world) lacking(set string) int {
	if set == "" {
		return 0
	}
	staying, missing := 0, 0
	for _, n := range w.machines(set) {
		if n.deleted || !n.made && !n.failed {
			missing++
		}
		if !n.deleted {
			staying++
		}
	}
	missing += max(0, w.replicas[set]-staying)
	for _, d := range w.truth {
		if d.replaces && d.node.set == set && w.lasts(d) && (!w.exists(d.node) || d.node.deleted) {
			missing--
		}
	}
	return max(0, missing)
}

// checkGoesOn says what must be true when a node that is being disturbed is allowed to be disturbed for another reason.
func (w *world) checkGoesOn(t *rapid.T, before *worldDisturbance, request Request) {
	was := before.cause == v1alpha1.CauseRepair || before.cause == v1alpha1.CauseRemoval
	if is := request.Cause == v1alpha1.CauseRepair || request.Cause == v1alpha1.CauseRemoval; was && !is {
		w.checkPolicy(t, before.node)
	}
	if request.Cause == v1alpha1.CauseUpgrade && (before.cause != request.Cause || before.version != request.Version) {
		w.checkCanary(t, before.node)
	}
}

// limits returns the limits of all nodes, and of a pool. A percentage is of no more than all nodes that serve or are
// replaced.
func (w *world) limits(pool string) (limit, poolLimit int) {
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
	if hour := (w.now.Hour() + 1) % 6; len(w.spec.MaintenanceWindows) > 0 && hour >= 3 { // it is winter in Paris
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
	others := false
	for _, other := range w.machines(n.set) {
		if other == n || other.failed || other.deleted {
			continue
		}
		if others = true; other.serving && other.Ready && w.disturbance(other) == nil {
			return
		}
	}
	if others {
		t.Fatalf("%s may be disturbed, the last that works of %s: %+v", n.Instance, n.set, w.view())
	}
}

func (w *world) checkCanary(t *rapid.T, n *worldNode) {
	proven := func(pool string) bool {
		return slices.ContainsFunc(w.nodes, func(o *worldNode) bool {
			return o.serving && !o.Gone && (pool == "" || o.Pool == pool) && o.Version == w.target && o.Ready &&
				w.now.Sub(o.Since) >= w.settings.CanarySoak
		})
	}
	if proven(n.Pool) {
		return
	}
	scope := func(pool string) bool { return !proven("") || pool == n.Pool }
	for _, d := range w.truth {
		if d.node != n && d.cause == v1alpha1.CauseUpgrade && d.version == w.target && scope(d.node.Pool) && w.lasts(d) {
			t.Fatalf("%s may be upgraded while %s is, and nothing is proven", n.Instance, d.node.Instance)
		}
	}
	for _, o := range w.nodes {
		if o == n || !o.serving || o.Gone || !scope(o.Pool) {
			continue
		}
		if o.Version == w.target {
			t.Fatalf("%s may be upgraded while %s has the version, and has not proven it", n.Instance, o.Instance)
		}
		if o.failedUpgrade(w.target) && !n.failedUpgrade(w.target) {
			t.Fatalf("%s may be upgraded though %s has failed", n.Instance, o.Instance)
		}
	}
}
