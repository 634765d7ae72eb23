package disruption

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestPausesAndMaintenanceWindows(t *testing.T) {
	shut := func(c *disruptionCase) {
		c.settings, _ = Parse(openAt("0 13 * * *", time.Hour, ""))
	}
	repair := func(c *disruptionCase) { c.setRequest("h1", v1alpha1.CauseRepair); c.breakNode("h1", 0) }
	remove := func(c *disruptionCase) { c.setRequest("h1", v1alpha1.CauseRemoval) }
	invalid := func(c *disruptionCase) {
		c.settings, _ = Parse(v1alpha1.WindowsDisruptionPolicySpec{MaxUnavailable: newNumberValue(0)})
	}
	paused := func(c *disruptionCase) { c.settings.Paused = true }
	poolPaused := func(c *disruptionCase) {
		c.settings.Pools = map[string]PoolSettings{"Hosts": {Paused: true}}
	}
	runDisruptionTests(t, map[string]disruptionTest{
		"a node waits while the policy is paused": {change: paused, check: "PolicyPaused",
			message: "WindowsDisruptionPolicy cluster is paused (spec.paused). Set it to false to resume."},
		"a repair does not wait for the end of a pause":  {change: func(c *disruptionCase) { paused(c); repair(c) }},
		"a removal does not wait for the end of a pause": {change: func(c *disruptionCase) { paused(c); remove(c) }},
		"what has begun goes on when the policy is paused": {change: func(c *disruptionCase) {
			paused(c)
			c.addDisruption("h1", v1alpha1.CauseUpgrade, 0)
		}, message: "already"},
		"a node waits while its pool is paused": {change: poolPaused, check: "PolicyPaused",
			message: "Pool Hosts is paused"},
		"a repair does not wait for its pool": {change: func(c *disruptionCase) {
			poolPaused(c)
			repair(c)
		}},
		"a node of another pool does not wait for it": {change: func(c *disruptionCase) {
			poolPaused(c)
			c.setRequest("a1", v1alpha1.CauseReboot)
		}},
		"a node waits for its maintenance window": {change: shut, check: "WindowClosed",
			message: `The next one opens at 2026-11-21 13:00 UTC ("0 13 * * *" for 1h, UTC).`, after: time.Hour},
		"a repair does not wait for a maintenance window":  {change: func(c *disruptionCase) { shut(c); repair(c) }},
		"a removal does not wait for a maintenance window": {change: func(c *disruptionCase) { shut(c); remove(c) }},
		"a repair goes on as an upgrade only when the pause ends": {change: func(c *disruptionCase) {
			paused(c)
			c.addDisruption("h1", v1alpha1.CauseRepair, 0)
		}, check: "PolicyPaused"},
		"an upgrade goes on as a repair": {change: func(c *disruptionCase) {
			paused(c)
			repair(c)
			c.addDisruption("h1", v1alpha1.CauseUpgrade, 0)
		}, message: "already"},
		"an upgrade goes on as a restart": {change: func(c *disruptionCase) {
			paused(c)
			c.setRequest("h1", v1alpha1.CauseReboot)
			c.addDisruption("h1", v1alpha1.CauseUpgrade, 0)
		}, message: "already"},
		"what has begun goes on when the window has closed": {change: func(c *disruptionCase) {
			shut(c)
			c.addDisruption("h1", v1alpha1.CauseUpgrade, 0)
		}, message: "already"},
		"a node goes in its maintenance window": {change: func(c *disruptionCase) {
			c.settings, _ = Parse(openAt("0 12 * * SAT", time.Hour, ""))
		}},
		"no node goes by a policy that cannot be followed": {change: invalid, check: "PolicyInvalid",
			message: `spec.maxUnavailable: "0" is not a number of nodes`},
		"a repair goes by a policy that cannot be followed":  {change: func(c *disruptionCase) { invalid(c); repair(c) }},
		"a removal goes by a policy that cannot be followed": {change: func(c *disruptionCase) { invalid(c); remove(c) }},
		"but only one at a time": {change: func(c *disruptionCase) {
			invalid(c)
			remove(c)
			c.addDisruption("a1", v1alpha1.CauseRemoval, 0)
		},
			check: "MaxUnavailableReached", after: 30 * time.Minute},
	})
}

func TestStopOnFailure(t *testing.T) {
	stop := func(c *disruptionCase) { c.markCanariesVerified(); c.settings.StopOnFailure = true }
	runDisruptionTests(t, map[string]disruptionTest{
		"no node goes while another one has failed": {change: func(c *disruptionCase) {
			stop(c)
			c.setFailure("a1", v1alpha1.ReasonChangeFailed)
		},
			check:   "NodeFailed",
			message: "Node node-a1 (MachineSet/a) has failed: the kubelet does not come up. No further node is disrupted"},
		"a node goes while another one has failed, where that is not to stop it": {change: func(c *disruptionCase) {
			stop(c)
			c.settings.StopOnFailure = false
			c.setFailure("a1", v1alpha1.ReasonChangeFailed)
		}},
		"a node goes that has failed itself": {change: func(c *disruptionCase) {
			stop(c)
			c.setFailure("h1", v1alpha1.ReasonChangeFailed)
		}},
		"a node goes while another one has failed with another version": {change: func(c *disruptionCase) {
			stop(c)
			c.setFailure("a1", v1alpha1.ReasonChangeFailed)
			c.findNode("a1").Failure.Version = "11.0.0"
		}},
		"a node goes while the pods of another one do not leave it": {change: func(c *disruptionCase) {
			stop(c)
			c.setFailure("a1", v1alpha1.ReasonDrainTimedOut)
		}},
		"a node goes while a host has failed that is gone": {change: func(c *disruptionCase) {
			stop(c)
			c.setFailure("h2", v1alpha1.ReasonChangeFailed)
			c.findNode("h2").Gone = true
		}},
		"no node goes while another one of its pool is not Ready past the deadline": {change: func(c *disruptionCase) {
			stop(c)
			c.breakNode("h2", time.Hour)
		},
			check: "NodeFailed", message: "Node node-h2 (Hosts) has not been Ready since 2026-11-21 11:00 UTC."},
		"no node goes while a Machine is not replaced past the deadline": {change: func(c *disruptionCase) {
			stop(c)
			c.addReplacement("a1", time.Hour)
		},
			check:   "NodeFailed",
			message: "Node node-a1 (MachineSet/a) is being replaced (since 2026-11-21 11:00 UTC), and did not recover by 2026-11-21 11:30 UTC."},
		"a repair goes while another one has failed": {change: func(c *disruptionCase) {
			stop(c)
			c.setFailure("a1", v1alpha1.ReasonChangeFailed)
			c.setRequest("h1", v1alpha1.CauseRepair)
			c.breakNode("h1", 0)
		}},
		"a removal goes while another one has failed": {change: func(c *disruptionCase) {
			stop(c)
			c.setFailure("a1", v1alpha1.ReasonChangeFailed)
			c.setRequest("h1", v1alpha1.CauseRemoval)
		}},
	})
}

func TestCanaries(t *testing.T) {
	upgrade := v1alpha1.CauseUpgrade
	many := func(c *disruptionCase) {
		c.settings.MaxUnavailable, c.settings.CanarySoak = Limit{Number: 9}, time.Hour
	}
	// first sets up a node that has the new version and has been Ready for the given time.
	first := func(c *disruptionCase, instance string, ready time.Duration) {
		many(c)
		c.findNode(instance).Version, c.findNode(instance).Since = versionAfter, noon.Add(-ready)
	}
	runDisruptionTests(t, map[string]disruptionTest{
		"the first node of all goes": {change: many},
		"the others wait for the first, in whatever pool": {change: func(c *disruptionCase) { many(c); c.addDisruption("a1", upgrade, 0) },
			check: "CanarySoaking", message: "Node node-a1 (MachineSet/a) is being upgraded (since 2026-11-21 12:00 UTC), as the first node with version 12.1.0. Other nodes follow when it has been Ready for 1h.", after: 30 * time.Minute},
		"the others wait for the first one until it is Ready where that is enough": {change: func(c *disruptionCase) {
			c.settings.CanarySoak = 0
			c.addDisruption("a1", v1alpha1.CauseUpgrade, 0)
		}, check: "CanarySoaking", message: "Other nodes follow when it is Ready.", after: 30 * time.Minute},
		"the others wait until it was Ready for long enough": {change: func(c *disruptionCase) { first(c, "a1", 20*time.Minute) },
			check: "CanarySoaking", message: "must remain Ready until 2026-11-21 12:40 UTC before other nodes follow", after: 40 * time.Minute},
		"the others wait when it is not Ready any more": {change: func(c *disruptionCase) { first(c, "a1", 20*time.Minute); c.findNode("a1").Ready = false },
			check: "CanarySoaking", message: "not been Ready since 2026-11-21 11:40 UTC", after: 10 * time.Minute},
		"the others do not follow when it is not Ready past the deadline": {change: func(c *disruptionCase) { first(c, "a1", 40*time.Minute); c.findNode("a1").Ready = false },
			check: "CanaryFailed", message: "Node node-a1 (MachineSet/a) has the version, but has not been Ready since"},
		"the first of another pool follows the first of all":         {change: func(c *disruptionCase) { first(c, "a1", time.Hour) }},
		"the second of its pool follows the first of all":            {change: func(c *disruptionCase) { first(c, "a1", time.Hour); c.setRequest("a2", upgrade) }},
		"the second of another pool waits for the first of that":     {change: func(c *disruptionCase) { first(c, "a1", time.Hour); c.addDisruption("h2", upgrade, 0) }, check: "CanarySoaking", message: "node-h2", after: 30 * time.Minute},
		"the second of another pool waits while the first is proven": {change: func(c *disruptionCase) { first(c, "a1", time.Hour); first(c, "h2", time.Minute) }, check: "CanarySoaking", message: "node-h2", after: 59 * time.Minute},
		"the first of a pool does not wait for that of another":      {change: func(c *disruptionCase) { first(c, "a1", time.Hour); c.addDisruption("b2", upgrade, 0) }},
		"all others follow once their pool has proven the version":   {change: func(c *disruptionCase) { many(c); c.markCanariesVerified(); c.addDisruption("h2", upgrade, 0) }},
		"no soak means once it is Ready":                             {change: func(c *disruptionCase) { first(c, "a1", 0); c.settings.CanarySoak = 0; c.setRequest("a2", upgrade) }},
		"the others stay as they are when the first has failed":      {change: func(c *disruptionCase) { many(c); c.setFailure("a1", v1alpha1.ReasonChangeFailed) }, check: "CanaryFailed", message: "The first node with version 12.1.0 has failed, so no other node is changed. Node node-a1 (MachineSet/a) has failed: the kubelet does not come up."},
		"one that has failed is tried again": {change: func(c *disruptionCase) {
			many(c)
			c.setFailure("h1", v1alpha1.ReasonChangeFailed)
			c.setFailure("a1", v1alpha1.ReasonChangeFailed)
		}},
		"the others follow a failure with another version": {change: func(c *disruptionCase) {
			many(c)
			c.setFailure("a1", v1alpha1.ReasonChangeFailed)
			c.findNode("a1").Failure.Version = "12.0.5"
		}},
		"the others follow a failure to restart": {change: func(c *disruptionCase) {
			many(c)
			c.setFailure("a1", v1alpha1.ReasonChangeFailed)
			c.findNode("a1").Failure.Cause = v1alpha1.CauseReboot
		}},
		"another goes first when the pods of one do not leave it": {change: func(c *disruptionCase) { many(c); c.setFailure("a1", v1alpha1.ReasonDrainTimedOut) }},
		"another goes first when the host of the first is gone": {change: func(c *disruptionCase) {
			many(c)
			c.setFailure("h2", v1alpha1.ReasonChangeFailed)
			c.findNode("h2").Gone = true
		}},
		"the others stay as they are when the first is not made again": {change: func(c *disruptionCase) { many(c); c.addReplacement("a1", time.Hour) }, check: "CanaryFailed", message: "did not recover by 2026-11-21 11:30 UTC."},
		"a failure in another pool holds up nothing that is proven": {change: func(c *disruptionCase) {
			first(c, "a1", time.Hour)
			c.setFailure("b1", v1alpha1.ReasonChangeFailed)
			c.setRequest("a2", upgrade)
		}},
		"a failure in another pool holds up no first of a pool once the version is proven": {change: func(c *disruptionCase) { first(c, "a1", time.Hour); c.setFailure("b1", v1alpha1.ReasonChangeFailed) }},
		"a failure of the first of a pool stops that pool":                                 {change: func(c *disruptionCase) { first(c, "a1", time.Hour); c.setFailure("h2", v1alpha1.ReasonChangeFailed) }, check: "CanaryFailed", message: "node-h2"},
		"a restart goes on as an upgrade only when the first is proven":                    {change: func(c *disruptionCase) { first(c, "a1", time.Minute); c.addDisruption("h1", v1alpha1.CauseReboot, 0) }, check: "CanarySoaking", message: "node-a1", after: 59 * time.Minute},
		"an upgrade goes on with another version only when that is proven": {change: func(c *disruptionCase) {
			first(c, "a1", time.Minute)
			c.addDisruption("h1", upgrade, 0).Version = "12.0.5"
		}, check: "CanarySoaking", after: 59 * time.Minute},
		"a restart does not wait for the first": {change: func(c *disruptionCase) { first(c, "a1", time.Minute); c.setRequest("h1", v1alpha1.CauseReboot) }},
		"a failure later than the first stops nothing": {change: func(c *disruptionCase) {
			many(c)
			c.markCanariesVerified()
			c.setFailure("h2", v1alpha1.ReasonChangeFailed)
		}},
	})
}

func newNumberValue(n int) *intstr.IntOrString {
	v := intstr.FromInt32(int32(n))
	return &v
}

func newDuration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func openAt(schedule string, d time.Duration, zone string) v1alpha1.WindowsDisruptionPolicySpec {
	return v1alpha1.WindowsDisruptionPolicySpec{MaintenanceWindows: []v1alpha1.MaintenanceWindow{{Schedule: schedule,
		Duration: metav1.Duration{Duration: d}, TimeZone: zone}}}
}
