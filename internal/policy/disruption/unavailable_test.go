package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const (
	versionBefore = "12.0.0"
	versionAfter  = "12.1.0"
)

// disruptionCase is three listed hosts h1 to h3 and two MachineSets of three Machines each, a1 to b3. All have been
// Ready since yesterday with the old version, and h1 needs an upgrade. With "proven", h3, a3 and b3 have the new
// version.
type disruptionCase struct {
	NodePool
	request  Request
	settings Settings
}

func newDisruptionCase() *disruptionCase {
	c := &disruptionCase{request: Request{Instance: "h1", UID: "uid-h1", Cause: v1alpha1.CauseUpgrade,
		Version: versionAfter}}
	c.settings, _ = Parse(v1alpha1.WindowsDisruptionPolicySpec{})
	for _, pool := range []string{"h", "a", "b"} {
		name := MachineSetPool(pool)
		if pool == "h" {
			name = HostsPool
		} else {
			c.MachineSets = append(c.MachineSets, MachineSet{Name: pool, Replicas: 3, Running: 3,
				Staying: []string{pool + "1", pool + "2", pool + "3"}})
		}
		for i := 1; i <= 3; i++ {
			instance := fmt.Sprintf("%s%d", pool, i)
			c.Nodes = append(c.Nodes, Node{Instance: instance, UID: types.UID("uid-" + instance), Node: "node-" + instance,
				Pool: name, Version: versionBefore,
				Ready: true, Since: noon.Add(-24 * time.Hour)})
		}
	}
	return c
}

func (c *disruptionCase) findNode(instance string) *Node {
	return &c.Nodes[slices.IndexFunc(c.Nodes, func(n Node) bool { return n.Instance == instance })]
}

func (c *disruptionCase) findMachineSet(name string) *MachineSet {
	return &c.MachineSets[slices.IndexFunc(c.MachineSets, func(m MachineSet) bool { return m.Name == name })]
}

func (c *disruptionCase) setRequest(instance string, cause v1alpha1.DisruptionCause) {
	c.request.Instance, c.request.UID, c.request.Cause = instance, types.UID("uid-"+instance), cause
}

func (c *disruptionCase) markCanariesVerified() {
	for _, instance := range []string{"h3", "a3", "b3"} {
		c.findNode(instance).Version = versionAfter
	}
}

// addDisruption adds an entry of the given age.
func (c *disruptionCase) addDisruption(instance string, cause v1alpha1.DisruptionCause,
	lasting time.Duration) *v1alpha1.Disruption {
	n := c.findNode(instance)
	c.Disruptions = append(c.Disruptions, v1alpha1.Disruption{Instance: instance, InstanceUID: n.UID, Node: n.Node,
		Pool: n.Pool, Cause: cause, Version: versionAfter,
		Since: metav1.NewTime(noon.Add(-lasting)), HolderIdentity: "another"})
	return &c.Disruptions[len(c.Disruptions)-1]
}

// addReplacement adds an entry for a Machine that is deleted and not yet recreated.
func (c *disruptionCase) addReplacement(instance string, lasting time.Duration) {
	c.addDisruption(instance, v1alpha1.CauseUpgrade, lasting).Machine = instance
	set := c.findMachineSet(strings.TrimPrefix(c.findNode(instance).Pool, "MachineSet/"))
	set.Running, set.Missing = set.Running-1, set.Missing+1
	set.Staying = slices.DeleteFunc(slices.Clone(set.Staying), func(m string) bool { return m == instance })
	c.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(n Node) bool { return n.Instance == instance })
}

func (c *disruptionCase) breakNode(instance string, lasting time.Duration) {
	n := c.findNode(instance)
	n.Ready, n.Since = false, noon.Add(-lasting)
	if set, found := strings.CutPrefix(n.Pool, "MachineSet/"); found {
		c.findMachineSet(set).Running--
	}
}

func (c *disruptionCase) setFailure(instance, reason string) {
	c.findNode(instance).Failure = &v1alpha1.FailedChange{Cause: v1alpha1.CauseUpgrade, Version: versionAfter, Reason: reason,
		DrainTimedOut: reason == v1alpha1.ReasonDrainTimedOut, Message: "the kubelet does not come up", RolledBack: true,
		Time: metav1.NewTime(noon)}
}

type disruptionTest struct {
	change func(c *disruptionCase)
	// check is the name of the failed check, empty if none fails; message is part of the decision's message, and
	// after is the time until the next decision.
	check, message string
	after          time.Duration
}

func runDisruptionTests(t *testing.T, tests map[string]disruptionTest) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newDisruptionCase()
			test.change(c)
			got := Allow(c.NodePool, c.request, c.settings, noon)
			if got.Check != test.check || got.Allowed != (test.check == "") || got.After != test.after ||
				!strings.Contains(got.Message, test.message) {
				t.Errorf("got %+v, want check %q, %q, after %s", got, test.check, test.message, test.after)
			}
			if same := got.Reason == v1alpha1.ReasonDisruptionInProgress; same != (test.check == "InstanceRecreated") {
				t.Errorf("check %q has the reason %s", got.Check, got.Reason)
			}
			if strings.Contains(got.Message, "%!") || !strings.HasSuffix(got.Message, ".") ||
				strings.Contains(got.Message, "..") || !got.Allowed && got.Reason == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Only one node is disrupted at a time, counting Machines and listed hosts together.
func TestMaxUnavailable_MachinesAndHostsCountTogether(t *testing.T) {
	upgrade, reboot := v1alpha1.CauseUpgrade, v1alpha1.CauseReboot
	runDisruptionTests(t, map[string]disruptionTest{
		"a node is upgraded when no other is disturbed": {change: func(*disruptionCase) {}},
		"a host waits for a Machine that is upgraded": {change: func(c *disruptionCase) { c.markCanariesVerified(); c.addDisruption("a1", upgrade, 10*time.Minute) },
			check: "MaxUnavailableReached", message: "Node node-a1 (MachineSet/a) is being upgraded (since 2026-11-21 11:50 UTC); of all Windows nodes, 1 may be unavailable at the same time. This node follows when a disruption slot is free, or by 2026-11-21 12:20 UTC",
			after: 20 * time.Minute},
		"a Machine waits for a host that is restarted": {change: func(c *disruptionCase) { c.setRequest("a1", reboot); c.addDisruption("h1", reboot, 0) },
			check: "MaxUnavailableReached", message: "Node node-h1 (Hosts) is being restarted", after: 30 * time.Minute},
		"a restart waits for a Machine that is replaced": {change: func(c *disruptionCase) { c.setRequest("a1", reboot); c.addReplacement("b1", time.Minute) },
			check: "MaxUnavailableReached", message: "Node node-b1 (MachineSet/b) is being replaced", after: 29 * time.Minute},
		"a repair waits for a node that is disturbed": {change: func(c *disruptionCase) {
			c.setRequest("a1", v1alpha1.CauseRepair)
			c.breakNode("a1", 0)
			c.addDisruption("h1", reboot, 0)
		}, check: "MaxUnavailableReached", after: 30 * time.Minute},
		"a removal waits for a node that is disturbed": {change: func(c *disruptionCase) { c.setRequest("a1", v1alpha1.CauseRemoval); c.addDisruption("h1", reboot, 0) },
			check: "MaxUnavailableReached", after: 30 * time.Minute},
		"a node waits for another of its pool that is not Ready": {change: func(c *disruptionCase) { c.breakNode("h2", 10*time.Minute) },
			check: "MaxUnavailableReached", message: "Node node-h2 (Hosts) has not been Ready since 2026-11-21 11:50 UTC", after: 20 * time.Minute},
		"a node waits for no node of another pool that is not Ready": {change: func(c *disruptionCase) { c.breakNode("a1", 10*time.Minute) }},
		"a node that is not Ready past the deadline counts no more":  {change: func(c *disruptionCase) { c.breakNode("h2", 30*time.Minute) }},
		"a host that is gone never counts":                           {change: func(c *disruptionCase) { c.breakNode("h2", 0); c.findNode("h2").Gone = true }},
		"a host that is gone while it is disturbed counts no more":   {change: func(c *disruptionCase) { c.addDisruption("h2", reboot, 0); c.findNode("h2").Gone = true }},
		"a change that did not come back by the deadline counts no more": {change: func(c *disruptionCase) {
			c.markCanariesVerified()
			c.addDisruption("a1", upgrade, 30*time.Minute)
			c.breakNode("a1", 30*time.Minute)
		}},
		"a change counts no more whose instance is gone":       {change: func(c *disruptionCase) { c.addDisruption("h2", reboot, 0).Instance = "other" }},
		"a change counts no more whose instance was made anew": {change: func(c *disruptionCase) { c.addDisruption("h2", reboot, 0).InstanceUID = "other" }},
		"a replacement counts no more when its set is gone":    {change: func(c *disruptionCase) { c.addReplacement("a1", 0); c.MachineSets = c.MachineSets[1:] }},
		"a replacement counts no more when its set is made smaller": {change: func(c *disruptionCase) {
			c.addReplacement("a1", 0)
			c.findMachineSet("a").Replicas, c.findMachineSet("a").Missing = 2, 0
		}},
		"a node goes on that is being disturbed":                              {change: func(c *disruptionCase) { c.addDisruption("h1", upgrade, time.Minute) }, message: "already"},
		"a node whose change has failed waits as any other":                   {change: func(c *disruptionCase) { c.addDisruption("h1", reboot, time.Hour); c.addDisruption("h2", reboot, 0) }, check: "MaxUnavailableReached", after: 30 * time.Minute},
		"a node that does not work is upgraded, and does not wait for itself": {change: func(c *disruptionCase) { c.breakNode("h1", 0) }},
		"a repair waits for no node that is not Ready": {change: func(c *disruptionCase) {
			c.setRequest("h1", v1alpha1.CauseRepair)
			c.breakNode("h1", 0)
			c.breakNode("h2", 0)
		}},
		"a removal waits for no node that is not Ready": {change: func(c *disruptionCase) { c.setRequest("h1", v1alpha1.CauseRemoval); c.breakNode("h2", 0) }},
		"two may be unavailable where the limit is two": {change: func(c *disruptionCase) {
			c.markCanariesVerified()
			c.settings.MaxUnavailable = Limit{Number: 2}
			c.addDisruption("a1", upgrade, 0)
		}},
		"two of nine are 25%": {change: func(c *disruptionCase) {
			c.markCanariesVerified()
			c.settings.MaxUnavailable = Limit{Percent: 25}
			c.addReplacement("a1", 0)
		}},
		"a third is too many for 25% of nine": {change: func(c *disruptionCase) {
			c.markCanariesVerified()
			c.settings.MaxUnavailable = Limit{Percent: 25}
			c.addReplacement("a1", 0)
			c.addDisruption("h2", reboot, time.Minute)
		}, check: "MaxUnavailableReached", message: "node-h2 (Hosts) is being restarted (since 2026-11-21 11:59 UTC); of all Windows nodes, 2 may", after: 29 * time.Minute},
		"a node that is disturbed and not Ready counts once": {change: func(c *disruptionCase) {
			c.settings.MaxUnavailable = Limit{Number: 2}
			c.breakNode("h2", 0)
			c.addDisruption("h2", reboot, 0)
		}},
		"of many, three are named": {change: func(c *disruptionCase) {
			for _, instance := range []string{"h2", "h3", "a1", "a2", "b1"} {
				c.addDisruption(instance, reboot, 0)
			}
		}, check: "MaxUnavailableReached", message: "and 2 more; of all", after: 30 * time.Minute},
		"a request for an instance that was made anew is asked again": {change: func(c *disruptionCase) { c.request.UID = "before" }, check: "InstanceRecreated", message: "h1 was recreated"},
	})
}

func TestPoolMaxUnavailable_LimitsNodesOfPool(t *testing.T) {
	upgrade, reboot := v1alpha1.CauseUpgrade, v1alpha1.CauseReboot
	two := func(c *disruptionCase) {
		c.markCanariesVerified()
		c.settings.MaxUnavailable = Limit{Number: 3}
		c.settings.Pools = map[string]PoolSettings{"Hosts": {MaxUnavailable: &Limit{Number: 1}}, "MachineSet/a": {MaxUnavailable: &Limit{Percent: 67}}}
	}
	runDisruptionTests(t, map[string]disruptionTest{
		"a node waits for another of its pool": {change: func(c *disruptionCase) { two(c); c.addDisruption("h2", upgrade, 0) },
			check: "PoolMaxUnavailableReached", message: "of pool Hosts, 1 may", after: 30 * time.Minute},
		"a node does not wait for one of another pool": {change: func(c *disruptionCase) {
			two(c)
			c.addDisruption("a1", upgrade, 0)
		}},
		"a pool without a limit of its own has that of all nodes": {change: func(c *disruptionCase) {
			two(c)
			c.setRequest("b1", upgrade)
			c.addDisruption("b2", reboot, 0)
		}},
		"two of three are 67%": {change: func(c *disruptionCase) {
			two(c)
			c.setRequest("a1", upgrade)
			c.addReplacement("a2", 0)
		}},
		"a percentage does not shrink when Machines are replaced": {change: func(c *disruptionCase) {
			two(c)
			c.settings.Pools["MachineSet/a"] = PoolSettings{MaxUnavailable: &Limit{Percent: 100}}
			c.settings.StopOnFailure = false
			c.setRequest("a1", upgrade)
			c.addReplacement("a2", 0)
		}},
		"a pool's limit is within that of all nodes": {change: func(c *disruptionCase) {
			two(c)
			c.settings.MaxUnavailable = Limit{Number: 1}
			c.setRequest("a1", upgrade)
			c.addDisruption("a2", reboot, 0)
		}, check: "MaxUnavailableReached", after: 30 * time.Minute},
		"a Machine waits while its set lacks one": {change: func(c *disruptionCase) {
			c.setRequest("a1", reboot)
			c.findMachineSet("a").Missing = 1
		},
			check: "PoolMaxUnavailableReached", message: "MachineSet a lacks 1 of its 3 Machines"},
		"a Machine does not wait for what another set lacks": {change: func(c *disruptionCase) {
			c.setRequest("a1", reboot)
			c.findMachineSet("b").Missing = 2
		}},
		"a host does not wait for what a set lacks": {change: func(c *disruptionCase) {
			c.findMachineSet("b").Missing = 2
		}},
		"a removal does not wait for what its set lacks": {change: func(c *disruptionCase) {
			c.setRequest("a1", v1alpha1.CauseRemoval)
			c.findMachineSet("a").Missing = 1
		}},
		"a Machine that is replaced is not counted as missing too": {change: func(c *disruptionCase) {
			two(c)
			c.setRequest("a3", reboot)
			c.addReplacement("a1", 0)
		}},
		"a Machine that is to be deleted counts besides one that is missing": {change: func(c *disruptionCase) {
			two(c)
			c.setRequest("a3", reboot)
			c.addDisruption("a1", upgrade, 0).Machine = "a1"
			c.findMachineSet("a").Replicas, c.findMachineSet("a").Missing = 4, 1
		}, check: "PoolMaxUnavailableReached", after: 30 * time.Minute},
		"a node of its pool that is not Ready counts in the pool": {change: func(c *disruptionCase) {
			two(c)
			c.breakNode("h2", 0)
		},
			check: "PoolMaxUnavailableReached", message: "Node node-h2 (Hosts) has not been Ready", after: 30 * time.Minute},
		"a set lacks a Machine still when its replacement has failed": {change: func(c *disruptionCase) {
			c.markCanariesVerified()
			c.setRequest("a2", reboot)
			c.addReplacement("a1", time.Hour)
		},
			check: "PoolMaxUnavailableReached", message: "MachineSet a lacks 1"},
	})
}

//
func TestMachineSet_LastRunningMachineKept(t *testing.T) {
	upgrade, reboot := v1alpha1.CauseUpgrade, v1alpha1.CauseReboot
	alone := func(c *disruptionCase) {
		c.Nodes = slices.DeleteFunc(c.Nodes, func(n Node) bool { return n.Instance == "a2" || n.Instance == "a3" })
		*c.findMachineSet("a") = MachineSet{Name: "a", Replicas: 1, Running: 1, Staying: []string{"a1"}}
		c.setRequest("a1", upgrade)
	}
	many := func(c *disruptionCase) {
		c.markCanariesVerified()
		c.settings.MaxUnavailable = Limit{Number: 9}
		c.setRequest("a1", upgrade)
	}
	runDisruptionTests(t, map[string]disruptionTest{
		"the Machine of a set with one replica is replaced all the same": {change: alone},
		"the last one is kept while the others are disturbed": {change: func(c *disruptionCase) {
			many(c)
			c.addDisruption("a2", reboot, 0)
			c.addReplacement("a3", 0)
			c.findNode("b1").Version = versionAfter
		},
			check: "CanarySoaking", message: "node-a3", after: 30 * time.Minute},
		"the last one is kept while the others are restarted": {change: func(c *disruptionCase) {
			many(c)
			c.addDisruption("a2", reboot, time.Minute)
			c.addDisruption("a3", reboot, 0)
		},
			check: "LastAvailableMachine", message: "Node node-a1 (MachineSet/a) is the only available node of MachineSet a",
			after: 29 * time.Minute},
		"the last one is kept while the others do not work": {change: func(c *disruptionCase) {
			many(c)
			c.breakNode("a2", time.Hour)
			c.breakNode("a3", time.Hour)
		}, check: "CanaryFailed", message: "node-a3"},
		"the last one is not restarted while the others do not work": {change: func(c *disruptionCase) {
			many(c)
			c.setRequest("a1", reboot)
			c.breakNode("a2", time.Hour)
			c.breakNode("a3", time.Hour)
		}, check: "LastAvailableMachine"},
		"the last one is kept while the others are not made yet": {change: func(c *disruptionCase) {
			alone(c)
			c.findMachineSet("a").Replicas = 2
			c.settings.MaxUnavailable = Limit{Number: 2}
		}, check: "LastAvailableMachine"},
		"the last one goes where all others have failed": {change: func(c *disruptionCase) {
			alone(c)
			c.findMachineSet("a").Replicas, c.findMachineSet("a").Failed = 2, 1
		}},
		"the last one goes where all others are gone": {change: func(c *disruptionCase) {
			c.setRequest("a1", upgrade)
			c.findNode("a2").Gone, c.findNode("a3").Gone = true, true
			c.findMachineSet("a").Failed = 2
		}},
		"the last one goes where an administrator takes it out": {change: func(c *disruptionCase) {
			c.setRequest("a1", v1alpha1.CauseRemoval)
			c.breakNode("a2", 0)
			c.breakNode("a3", 0)
		}},
		"one that does not work goes first": {change: func(c *disruptionCase) {
			many(c)
			c.breakNode("a1", 0)
			c.addDisruption("a2", reboot, 0)
			c.breakNode("a3", 0)
			c.setRequest("a1", reboot)
		}},
		"the last host goes: hosts are no MachineSet": {change: func(c *disruptionCase) {
			c.breakNode("h2", time.Hour)
			c.breakNode("h3", time.Hour)
		}},
	})
}
