package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const (
	oldKey, newKey         = "old", "new"
	oldVersion, newVersion = "11.0.0-abc1234", "12.0.0"
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

// upgraded is such a MachineSet whose hosts have the present key and were configured by another version, to be replaced for that.
func upgraded(names ...string) Fleet {
	fleet := fleetOf(names...)
	for i := range names {
		fleet.Machines[i].Refused, fleet.Machines[i].Awaits = false, true
		fleet.Nodes[i].KeyHash, fleet.Nodes[i].Version = newKey, oldVersion
	}
	return fleet
}

func rotated() KeyChange { return KeyChange{Present: newKey, UserData: true} }

//
func TestNextReplacements(t *testing.T) {
	for name, test := range map[string]struct {
		fleet  Fleet
		change func(f *Fleet, k *KeyChange)
		want   string // the Machines that may go, by turn
		waits  string // the check that keeps the first of those that wait
		left   string // a Machine that is left
	}{
		"all, by name": {fleet: fleetOf("b", "a", "c"), want: "a b c"},
		"the only one of its set, for nobody else could do it without a gap": {fleet: fleetOf("a"), want: "a"},
		"none when all have the key":                                         {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].KeyHash = newKey }},
		"none that was never configured: its user data may be at work":       {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].KeyHash = "" }},
		"none that has no Node yet":                                          {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Node = "" }},
		"none that is ignored":                                               {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Ignored = true }},
		"none that goes anyway":                                              {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Deleting = true }},
		"none in phase Deleting":                                             {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Phase = "Deleting" }},
		"none whose set goes anyway":                                         {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Sets[0].Deleting = true }},
		"none that nobody would make again":                                  {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Set = "" }, left: "a"},
		"none whose set is gone":                                             {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Sets = nil }, left: "a"},
		"none whose key comes from elsewhere":                                {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Sets[0].OwnKey = true }, left: "a"},
		"another one while one is paused":                                    {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Paused = true }, want: "b", left: "a"},
		"none before new Machines would accept the key":                      {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) { k.UserData = false }, waits: "UserData"},
		"none that does not run yet":                                         {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Phase = "Provisioned" }, waits: "Phase"},
		"none whose Node is being changed": {fleet: fleetOf("a", "b"), change: func(f *Fleet, k *KeyChange) {
			f.Nodes[0].Changing, f.Machines[0].Refused, k.Known = true, false, InPlaceWait
		}, want: "b", waits: "NodeBusy"},
		"one whose change has ended with a refusal of the key":       {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].Changing = true }, want: "a"},
		"one whose change in place has made way for its replacement": {fleet: upgraded("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].Changing = true }, want: "a"},
		"none while its set is made smaller":                         {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Sets[0].Replicas-- }, waits: "Surplus"},
		"first the one whose Node does not work":                     {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[1].Ready = false }, want: "b a"},
		"none while another of the set has failed: the next may fail as well": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Machines[1].Phase, f.Nodes[1].Ready = "Failed", false
		}, waits: "MachineFailed"},
		"none while one of the set has failed that was to take the place of another": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Machines[1].Phase, f.Machines[1].Node, f.Nodes = "Failed", "", f.Nodes[:1]
		}, waits: "MachineFailed"},
		"those of other sets than the one of which a Machine has failed": {fleet: fleetOf("a", "b", "c"), change: func(f *Fleet, _ *KeyChange) {
			f.Sets = []FleetSet{{Name: "set", Replicas: 2, Machines: 2}, {Name: "other", Replicas: 1, Machines: 1}}
			f.Machines[0].Phase, f.Machines[2].Set = "Failed", "other"
		}, want: "c", waits: "MachineFailed"},
		"one while another has failed, which is ignored": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Machines[1].Phase, f.Machines[1].Ignored = "Failed", true
		}, want: "a"},
		"none in the first minutes that was not tried with the key": {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Refused = false }, waits: "InPlace"},
		"one that could not be tried for long": {fleet: fleetOf("a"), change: func(f *Fleet, k *KeyChange) {
			f.Machines[0].Refused, k.Known = false, InPlaceWait
		}, want: "a"},
		"none in the first minutes that can be given the key by the previous one": {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) { k.Previous = oldKey }, waits: "InPlace"},
		"one that could not be given it for long": {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) {
			k.Previous, k.Known = oldKey, InPlaceWait
		}, want: "a"},
		"one for which the previous key is not the one": {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) { k.Previous = "another" }, want: "a"},
		"one that need not wait, when another must": {fleet: fleetOf("a", "b"), change: func(f *Fleet, k *KeyChange) {
			k.Previous, f.Nodes[1].KeyHash = oldKey, "older"
		}, want: "b", waits: "InPlace"},

		"one of another version that is to be replaced for it": {fleet: upgraded("a", "b"), want: "a b"},
		"none of this version":                                 {fleet: upgraded("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].Version = newVersion }},
		"none of which only the annotation is to change":       {fleet: upgraded("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Awaits = false }},
		"none that no version has configured to its end":       {fleet: upgraded("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].Version = "" }},
		"none of another version that nobody would make again": {fleet: upgraded("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Set = "" }},
		"one of another version whose key comes from elsewhere, as its host accepts the present one": {fleet: upgraded("a"), change: func(f *Fleet, k *KeyChange) {
			f.Sets[0].OwnKey, k.UserData = true, false
		}, want: "a"},
		"none of another version whose key comes from elsewhere, and is another": {fleet: upgraded("a"), change: func(f *Fleet, _ *KeyChange) {
			f.Sets[0].OwnKey, f.Nodes[0].KeyHash = true, oldKey
		}, left: "a"},
		"none of another version that would be followed by one without the key": {fleet: upgraded("a"), change: func(_ *Fleet, k *KeyChange) { k.UserData = false }, waits: "UserData"},
		"one of another version at once, though its host might be given the key": {fleet: upgraded("a"), change: func(f *Fleet, k *KeyChange) {
			k.Previous, f.Nodes[0].KeyHash = oldKey, oldKey
		}, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			key := rotated()
			if test.change != nil {
				test.change(&test.fleet, &key)
			}
			got := NextReplacements(test.fleet, newVersion, key)
			var may []string
			for _, candidate := range got.Candidates {
				may = append(may, candidate.Machine)
				if candidate.Set == "" || candidate.Cause == "" {
					t.Errorf("candidate %+v", candidate)
				}
			}
			if !slices.Equal(may, strings.Fields(test.want)) {
				t.Errorf("%v may go, want %s", may, test.want)
			}
			if (test.waits == "") != (len(got.Waiting) == 0) || test.waits != "" && got.Waiting[0].Check != test.waits {
				t.Errorf("waiting are %+v, want %s", got.Waiting, test.waits)
			}
			for _, waiting := range got.Waiting {
				if waiting.Message == "" || strings.Contains(waiting.Message, "%!") {
					t.Errorf("%+v", waiting)
				}
			}
			if test.left != "" && got.Left[test.left] == "" || test.left == "" && len(got.Left) > 0 {
				t.Errorf("left are %v", got.Left)
			}
		})
	}
	t.Run("one with another key and another version is replaced once, for its version", func(t *testing.T) {
		fleet := upgraded("a", "b")
		fleet.Nodes[0].KeyHash, fleet.Nodes[1].KeyHash, fleet.Machines[1].Awaits = oldKey, oldKey, false
		fleet.Machines[1].Refused = true
		got := NextReplacements(fleet, newVersion, rotated()).Candidates
		want := []ReplacementCandidate{{"a", "set", v1alpha1.CauseUpgrade}, {"b", "set", v1alpha1.CauseKeyChange}}
		if !slices.Equal(got, want) {
			t.Errorf("candidates are %+v", got)
		}
	})
	t.Run("one that waits for another of its set to be gone says which", func(t *testing.T) {
		fleet := fleetOf("a", "b")
		fleet.Machines[0].Deleting, fleet.Sets[0].Replicas = true, 1
		got := NextReplacements(fleet, newVersion, rotated()).Waiting
		if len(got) != 1 || got[0].Machine != "b" || !strings.Contains(got[0].Message, "Machine a is still being deleted") {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("an operator that does not know its version replaces none for it", func(t *testing.T) {
		if got := NextReplacements(upgraded("a"), "", rotated()); len(got.Candidates)+len(got.Waiting)+len(got.Left) > 0 {
			t.Errorf("got %+v", got)
		}
	})
}

// cloud is a Machine API in which anything happens, in any order.
type cloud struct {
	fleet Fleet
	key   KeyChange
	made  int
	// disturbed are the MachineSets of which one was replaced and that are not whole again, nor given up.
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
			m.Phase, m.Node, m.Refused, m.Awaits = "Running", "node-"+m.Name, rapid.Bool().Draw(t, "refused"), rapid.Bool().Draw(t, "awaits")
			c.fleet.Nodes = append(c.fleet.Nodes, FleetNode{
				Name: m.Node, KeyHash: rapid.SampledFrom([]string{oldKey, newKey}).Draw(t, "key"),
				Version: rapid.SampledFrom([]string{oldVersion, newVersion}).Draw(t, "version"), Ready: rapid.Bool().Draw(t, "ready"),
			})
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
			node.Ready, node.KeyHash, node.Version = true, newKey, newVersion
		case m.Phase == "Running" && node != nil && (!node.Ready && !outdatedNode(m, node) || node.Changing):
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
	switch rapid.SampledFrom([]string{"node fails", "node changes", "machine fails", "given the key", "refuses", "awaits", "time"}).Draw(t, "what") {
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
	case "awaits":
		m.Awaits = true
	case "time":
		c.key.Known += InPlaceWait / 3
	}
}

// of are the Machines of a MachineSet, and how many of them run and have a Node that works.
func (c *cloud) of(set string) (machines []FleetMachine, working int) {
	for _, m := range c.fleet.Machines {
		if m.Set != set {
			continue
		}
		machines = append(machines, m)
		if n := c.node(m.Node); m.Phase == "Running" && !m.Deleting && n != nil && n.Ready {
			working++
		}
	}
	return machines, working
}

// gate lets one Machine go at a time, and none of a set that has less Machines than it is to have, nor the last that works of several.
func (c *cloud) gate(candidate FleetMachine) bool {
	for i := range c.fleet.Sets {
		set := &c.fleet.Sets[i]
		machines, working := c.of(set.Name)
		if set.Machines = len(machines); set.Machines == set.Replicas && working == set.Replicas {
			delete(c.disturbed, set.Name)
		}
	}
	machines, working := c.of(candidate.Set)
	for _, m := range machines {
		if m.Deleting || m.Phase != "Running" && m.Phase != "Failed" {
			return false
		}
	}
	ready := c.node(candidate.Node).Ready
	set := c.fleet.Sets[slices.IndexFunc(c.fleet.Sets, func(s FleetSet) bool { return s.Name == candidate.Set })]
	return len(c.disturbed) == 0 && len(machines) >= set.Replicas && (!ready || len(machines) == 1 || working > 1)
}

// replace does what the policy says, and checks it.
func (c *cloud) replace(t *rapid.T) bool {
	next := NextReplacements(c.fleet, newVersion, c.key)
	i := -1
	for _, candidate := range next.Candidates {
		at := slices.IndexFunc(c.fleet.Machines, func(m FleetMachine) bool { return m.Name == candidate.Machine })
		if at < 0 {
			t.Fatalf("%+v is no Machine", candidate)
		}
		if c.gate(c.fleet.Machines[at]) {
			i = at
			break
		}
	}
	if i < 0 {
		return false
	}
	m := &c.fleet.Machines[i]
	node := c.node(m.Node)
	if node == nil || node.KeyHash == "" || !outdatedNode(m, node) {
		t.Fatalf("%+v is deleted, whose Node is %+v: it was never configured, or is what it should be", m, node)
	}
	machines, working := c.of(m.Set)
	for _, other := range machines {
		if other.Phase == "Failed" {
			t.Fatalf("%s is deleted while %s of its set has failed", m.Name, other.Name)
		}
	}
	if node.Ready && len(machines) > 1 && working < 2 {
		t.Fatalf("%s is deleted, the last that works of its set", m.Name)
	}
	m.Deleting, c.disturbed[m.Set] = true, true
	return true
}

func outdatedNode(m *FleetMachine, n *FleetNode) bool {
	return n.KeyHash != newKey || m.Awaits && n.Version != newVersion
}

// Whatever happens in whatever order: none goes that was not configured, none whose set has one that failed, and not the last of a set that
// works; and once nothing happens besides, all are replaced that were configured with another key or that wait for another version. R-030,
//
func TestAllMachinesAreReplaced(t *testing.T) {
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
			if c.settle() || c.replace(t) {
				continue
			}
			if len(c.disturbed) == 0 {
				break
			}
			clear(c.disturbed) // their deadline has passed
		}
		for _, m := range c.fleet.Machines {
			if n := c.node(m.Node); m.Phase == "Running" && (n == nil || outdatedNode(&m, n) || !n.Ready) {
				t.Fatalf("%+v with %+v was forgotten: %+v", m, n, NextReplacements(c.fleet, newVersion, c.key))
			}
		}
	})
}
