package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	oldKey, newKey = "old", "new"
)

// fleetOf is a MachineSet "set" with Machines that run, whose Nodes work with the old key, which the hosts have refused to exchange.
func fleetOf(names ...string) Fleet {
	fleet := Fleet{Sets: []FleetSet{{Name: "set", Replicas: len(names), Machines: len(names)}}}
	for _, name := range names {
		fleet.Machines = append(fleet.Machines, FleetMachine{Name: name, Phase: "Running", Set: "set", Node: "node-" + name, Refused: true})
		fleet.Nodes = append(fleet.Nodes, FleetNode{Name: "node-" + name, KeyHash: oldKey, Ready: true})
	}
	return fleet
}

func rotated() KeyChange { return KeyChange{Present: newKey, UserData: true} }

//
func TestNextReplacement(t *testing.T) {
	for name, test := range map[string]struct {
		fleet  Fleet
		change func(f *Fleet, k *KeyChange)
		want   string // the Machine, or the check that keeps it
		left   string // a Machine that is left
	}{
		"one of several, when all is at rest":                                {fleet: fleetOf("a", "b"), want: "a"},
		"the only one of its set, for nobody else could do it without a gap": {fleet: fleetOf("a"), want: "a"},
		"none when all have the key":                                         {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].KeyHash = newKey }},
		"none that was never configured: its user data may be at work":       {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].KeyHash = "" }},
		"none that has no Node yet":                                          {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Node = "" }},
		"none that is ignored":                                               {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Ignored = true }},
		"none that goes anyway":                                              {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Deleting = true }},
		"none whose set goes anyway":                                         {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Sets[0].Deleting = true }},
		"none that nobody would make again":                                  {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Set = "" }, left: "a"},
		"none whose set is gone":                                             {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Sets = nil }, left: "a"},
		"none whose key comes from elsewhere":                                {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Sets[0].OwnKey = true }, left: "a"},
		"another one while one is paused":                                    {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Paused = true }, want: "b", left: "a"},
		"none before new Machines would accept the key":                      {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) { k.UserData = false }, want: "UserData"},
		"none while another is deleted":                                      {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Machines[1].Deleting = true }, want: "MachineBusy"},
		"none while another is in phase Deleting":                            {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Machines[1].Phase = "Deleting" }, want: "MachineBusy"},
		"none while another is provisioned":                                  {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Machines[1].Phase = "Provisioned" }, want: "MachineBusy"},
		"none while another has no phase yet":                                {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Machines[1].Phase = "" }, want: "MachineBusy"},
		"one while another, which is ignored, is deleted": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Machines[1].Ignored, f.Machines[1].Deleting = true, true
		}, want: "a"},
		"none between the end of a Machine and the beginning of the next": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Sets[0].Machines-- }, want: "Replicas"},
		"none while a set is made smaller":                                {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Sets[0].Replicas-- }, want: "Replicas"},
		"none while another set is made larger": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Sets = append(f.Sets, FleetSet{Name: "other", Replicas: 1})
		}, want: "Replicas"},
		"none while a Node does not work that has the key": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Nodes[1].KeyHash, f.Nodes[1].Ready = newKey, false
		}, want: "NodeBusy"},
		"none while a Machine that runs has lost its Node": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Nodes = f.Nodes[:1] }, want: "NodeBusy"},
		"none while another Node is being changed":         {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[1].Changing = true }, want: "NodeBusy"},
		"none while its own Node is being changed":         {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].Changing = true }, want: "NodeBusy"},
		"none while a host from windows-instances does not work": {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) {
			f.Nodes = append(f.Nodes, FleetNode{Name: "byoh", KeyHash: newKey})
		}, want: "NodeBusy"},
		"first the one whose Node does not work": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[1].Ready = false }, want: "b"},
		"one after the other where none works":   {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].Ready, f.Nodes[1].Ready = false, false }, want: "a"},
		"none while another has failed: the next may fail as well": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Machines[1].Phase, f.Nodes[1].Ready = "Failed", false
		}, want: "MachineFailed"},
		"none while one has failed that was to take the place of another": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Machines[1].Phase, f.Machines[1].Node, f.Nodes = "Failed", "", f.Nodes[:1]
		}, want: "MachineFailed"},
		"none while one of another set has failed": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Sets = []FleetSet{{Name: "set", Replicas: 1, Machines: 1}, {Name: "other", Replicas: 1, Machines: 1}}
			f.Machines[1].Set, f.Machines[1].Phase = "other", "Failed"
		}, want: "MachineFailed"},
		"one while another has failed, which is ignored": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Machines[1].Phase, f.Machines[1].Ignored = "Failed", true
		}, want: "a"},
		"none in the first minutes that was not tried with the key": {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Refused = false }, want: "InPlace"},
		"one that could not be tried for long": {fleet: fleetOf("a"), change: func(f *Fleet, k *KeyChange) {
			f.Machines[0].Refused, k.Known = false, InPlaceWait
		}, want: "a"},
		"none in the first minutes that can be given the key by the previous one": {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) { k.Previous = oldKey }, want: "InPlace"},
		"one that could not be given it for long": {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) {
			k.Previous, k.Known = oldKey, InPlaceWait
		}, want: "a"},
		"one for which the previous key is not the one": {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) { k.Previous = "another" }, want: "a"},
		"one that need not wait, before one that must": {fleet: fleetOf("a", "b"), change: func(f *Fleet, k *KeyChange) {
			k.Previous, f.Nodes[1].KeyHash = oldKey, "older"
		}, want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			key := rotated()
			if test.change != nil {
				test.change(&test.fleet, &key)
			}
			got := NextReplacement(test.fleet, key)
			if got.Machine != test.want && got.Check != test.want {
				t.Errorf("got %+v, want %q", got, test.want)
			}
			if got.Machine != "" && got.Check != "" || (got.Check == "") != (got.Message == "") {
				t.Errorf("got %+v", got)
			}
			if test.left != "" && got.Left[test.left] == "" || test.left == "" && len(got.Left) > 0 {
				t.Errorf("left are %v", got.Left)
			}
			if strings.Contains(got.Message, "%!") {
				t.Error(got.Message)
			}
		})
	}
	t.Run("none when the last one of a set that works would go", func(t *testing.T) {
		fleet := fleetOf("a", "b")
		s := replacementSubject{fleet: fleet, nodes: map[string]FleetNode{"node-a": fleet.Nodes[0]}, candidate: fleet.Machines[0]}
		if lastRunning(s) == "" {
			t.Error("it may go")
		}
	})
	t.Run("who waits is told", func(t *testing.T) {
		got := NextReplacement(fleetOf("b", "a", "c"), rotated())
		if !slices.Equal(got.Outdated, []string{"a", "b", "c"}) {
			t.Errorf("outdated are %v", got.Outdated)
		}
	})
}

// cloud is a Machine API in which anything happens, in any order.
type cloud struct {
	fleet Fleet
	key   KeyChange
	made  int
	// disturbed counts what the operator has deleted and is not whole again.
	disturbed map[string]bool
}

func newCloud(t *rapid.T) *cloud {
	c := &cloud{key: KeyChange{Present: newKey, UserData: true}, disturbed: map[string]bool{}}
	if rapid.Bool().Draw(t, "previous key") {
		c.key.Previous = oldKey
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "sets") {
		set := FleetSet{Name: fmt.Sprintf("set%d", i), Replicas: rapid.IntRange(0, 3).Draw(t, "replicas")}
		c.fleet.Sets = append(c.fleet.Sets, set)
		for range set.Replicas {
			m := c.make(set.Name)
			m.Phase, m.Node, m.Refused = "Running", "node-"+m.Name, rapid.Bool().Draw(t, "refused")
			c.fleet.Nodes = append(c.fleet.Nodes, FleetNode{Name: m.Node, KeyHash: rapid.SampledFrom([]string{oldKey, newKey}).Draw(t, "key"), Ready: rapid.Bool().Draw(t, "ready")})
		}
	}
	return c
}

func (c *cloud) make(set string) *FleetMachine {
	c.made++
	c.fleet.Machines = append(c.fleet.Machines, FleetMachine{Name: fmt.Sprintf("m%d", c.made), Set: set})
	return &c.fleet.Machines[len(c.fleet.Machines)-1]
}

func (c *cloud) node(name string) *FleetNode {
	for i := range c.fleet.Nodes {
		if name != "" && c.fleet.Nodes[i].Name == name {
			return &c.fleet.Nodes[i]
		}
	}
	return nil
}

// settle does the next thing that a Machine API and an operator that work would do. It returns false when there is nothing to do.
func (c *cloud) settle() bool {
	for i := range c.fleet.Sets {
		c.fleet.Sets[i].Machines = 0
	}
	for i := range c.fleet.Machines {
		m := &c.fleet.Machines[i]
		for j := range c.fleet.Sets {
			if c.fleet.Sets[j].Name == m.Set {
				c.fleet.Sets[j].Machines++
			}
		}
		node := c.node(m.Node)
		switch {
		case m.Deleting:
			c.fleet.Nodes = slices.DeleteFunc(c.fleet.Nodes, func(n FleetNode) bool { return n.Name == m.Node })
			c.fleet.Machines = slices.Delete(c.fleet.Machines, i, i+1)
		case m.Phase == "Failed": // a MachineHealthCheck, or an administrator
			m.Deleting = true
		case m.Phase == "":
			m.Phase = "Provisioning"
		case m.Phase == "Provisioning":
			m.Phase = "Provisioned"
		case m.Phase == "Provisioned" && m.Node == "":
			m.Node = "node-" + m.Name
			c.fleet.Nodes = append(c.fleet.Nodes, FleetNode{Name: m.Node})
		case m.Phase == "Provisioned":
			m.Phase = "Running"
		case m.Phase == "Running" && node != nil && !node.Ready && node.KeyHash == "":
			node.Ready, node.KeyHash = true, newKey
		case m.Phase == "Running" && node != nil && (!node.Ready && node.KeyHash == newKey || node.Changing):
			node.Ready, node.Changing = true, false
		default:
			continue
		}
		return true
	}
	for i := range c.fleet.Sets {
		if set := &c.fleet.Sets[i]; set.Machines < set.Replicas {
			c.make(set.Name)
			set.Machines++
			return true
		}
	}
	return false
}

// disturb is what happens besides.
func (c *cloud) disturb(t *rapid.T) {
	if len(c.fleet.Machines) == 0 {
		return
	}
	m := &c.fleet.Machines[rapid.IntRange(0, len(c.fleet.Machines)-1).Draw(t, "which")]
	node := c.node(m.Node)
	switch rapid.SampledFrom([]string{"node fails", "node changes", "machine fails", "given the key", "refuses", "time"}).Draw(t, "what") {
	case "node fails":
		if node != nil {
			node.Ready = false
		}
	case "node changes":
		if node != nil {
			node.Changing = true
		}
	case "machine fails":
		if m.Phase != "Running" && !m.Deleting {
			m.Phase = "Failed"
		}
	case "given the key":
		if node != nil && node.KeyHash == oldKey {
			node.KeyHash = newKey
		}
	case "refuses":
		m.Refused = true
	case "time":
		c.key.Known += InPlaceWait / 3
	}
}

// replace does what the policy says, and checks it.
func (c *cloud) replace(t *rapid.T) bool {
	next := NextReplacement(c.fleet, c.key)
	if next.Machine == "" {
		return false
	}
	i := slices.IndexFunc(c.fleet.Machines, func(m FleetMachine) bool { return m.Name == next.Machine })
	if i < 0 {
		t.Fatalf("%s is no Machine", next.Machine)
	}
	m := &c.fleet.Machines[i]
	node := c.node(m.Node)
	if node == nil || node.KeyHash == "" || node.KeyHash == newKey {
		t.Fatalf("%+v is deleted, whose Node is %+v: it was never configured, or has the key", m, node)
	}
	for _, other := range c.fleet.Machines {
		otherNode := c.node(other.Node)
		switch {
		case other.Deleting:
			t.Fatalf("two at once: %s and %s", m.Name, other.Name)
		case other.Phase != "Running":
			t.Fatalf("%s is deleted while %s is in phase %q", m.Name, other.Name, other.Phase)
		case other.Phase == "Running" && otherNode != nil && !otherNode.Ready && otherNode.KeyHash == newKey:
			t.Fatalf("%s is deleted while the Node of %s, which was made in the place of one before, does not work", m.Name, other.Name)
		}
	}
	working := func(other FleetMachine) bool {
		n := c.node(other.Node)
		return other.Set == m.Set && other.Name != m.Name && other.Phase == "Running" && n != nil && n.Ready
	}
	others := slices.ContainsFunc(c.fleet.Machines, func(o FleetMachine) bool { return o.Set == m.Set && o.Name != m.Name && o.Phase != "Failed" })
	if node.Ready && others && !slices.ContainsFunc(c.fleet.Machines, working) {
		t.Fatalf("%s is deleted, the last that works of its set", m.Name)
	}
	m.Deleting = true
	return true
}

// Whatever happens in whatever order: never two at once, never one that was not configured, never the last of a set; and once nothing
// happens besides, all are replaced that were configured with another key.
func TestAllMachinesAreReplacedOneAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCloud(t)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"settle", "disturb", "replace"}).Draw(t, "next") {
			case "settle":
				c.settle()
			case "disturb":
				c.disturb(t)
			case "replace":
				c.replace(t)
			}
		}
		c.key.Known += InPlaceWait + time.Second
		for range 1000 {
			if !c.settle() && !c.replace(t) {
				break
			}
		}
		for _, m := range c.fleet.Machines {
			if n := c.node(m.Node); m.Phase == "Running" && (n == nil || n.KeyHash != newKey || !n.Ready) {
				t.Fatalf("%+v with %+v was forgotten: %+v", m, n, NextReplacement(c.fleet, c.key))
			}
		}
	})
}
