package replacement

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// cloud is a Machine API that simulates arbitrary events in any order.
type cloud struct {
	fleet Fleet
	key   KeyChange
	made  int
	// MachineSets with a replaced Machine that have neither recovered nor passed the deadline
	disturbed map[string]bool
}

func newCloud(t *rapid.T) *cloud {
	c := &cloud{key: KeyChange{Present: newKey, UserData: true}, disturbed: map[string]bool{}}
	if rapid.Bool().Draw(t, "previous key") {
		c.key.Previous = oldKey
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "sets") {
		set := MachineSet{Name: fmt.Sprintf("set%d", i), Replicas: rapid.IntRange(0, 3).Draw(t, "replicas")}
		c.fleet.Sets = append(c.fleet.Sets, set)
		for range set.Replicas {
			m := c.make(set.Name)
			m.Phase, m.Node, m.Refused, m.Awaits = "Running", "node-"+m.Name, rapid.Bool().Draw(t, "refused"),
				rapid.Bool().Draw(t, "awaits")
			c.fleet.Nodes = append(c.fleet.Nodes, Node{
				Name: m.Node, KeyHash: rapid.SampledFrom([]string{oldKey, newKey}).Draw(t, "key"),
				Version: rapid.SampledFrom([]string{oldVersion, newVersion}).Draw(t, "version"),
				Ready:   rapid.Bool().Draw(t, "ready"),
			})
		}
	}
	return c
}

func (c *cloud) make(set string) *Machine {
	c.made++
	c.fleet.Machines = append(c.fleet.Machines, Machine{Name: fmt.Sprintf("m%d", c.made), Set: set})
	return &c.fleet.Machines[len(c.fleet.Machines)-1]
}

func (c *cloud) node(name string) *Node {
	for i := range c.fleet.Nodes {
		if name != "" && c.fleet.Nodes[i].Name == name {
			return &c.fleet.Nodes[i]
		}
	}
	return nil
}

// settle performs the next step of a working Machine API and operator. It returns false if there is nothing to do.
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
			c.fleet.Nodes = slices.DeleteFunc(c.fleet.Nodes, func(n Node) bool { return n.Name == m.Node })
			c.fleet.Machines = slices.Delete(c.fleet.Machines, i, i+1)
		case m.Phase == "Failed": // a MachineHealthCheck, or an administrator
			m.Deleting = true
		case m.Phase == "":
			m.Phase = "Provisioning"
		case m.Phase == "Provisioning":
			m.Phase = "Provisioned"
		case m.Phase == "Provisioned" && m.Node == "":
			m.Node = "node-" + m.Name
			c.fleet.Nodes = append(c.fleet.Nodes, Node{Name: m.Node})
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

// disturb simulates all other events.
func (c *cloud) disturb(t *rapid.T) {
	if len(c.fleet.Machines) == 0 {
		return
	}
	m := &c.fleet.Machines[rapid.IntRange(0, len(c.fleet.Machines)-1).Draw(t, "which")]
	node := c.node(m.Node)
	switch rapid.SampledFrom([]string{"node fails", "node changes", "machine fails", "given the key", "refuses", "awaits",
		"time"}).Draw(t, "what") {
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

// of returns the Machines of a MachineSet, and the number of Machines that run and have a working Node.
func (c *cloud) of(set string) (machines []Machine, working int) {
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

// gate allows the deletion of one Machine at a time, but no Machine of a set that lacks Machines, nor the last
// working Machine of a larger set.
func (c *cloud) gate(candidate Machine) bool {
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
	set := c.fleet.Sets[slices.IndexFunc(c.fleet.Sets, func(s MachineSet) bool { return s.Name == candidate.Set })]
	return len(c.disturbed) == 0 && len(machines) >= set.Replicas && (!ready || len(machines) == 1 || working > 1)
}

// replace follows the policy and checks the result.
func (c *cloud) replace(t *rapid.T) bool {
	next := Next(c.fleet, newVersion, c.key)
	i := -1
	for _, candidate := range next.Candidates {
		at := slices.IndexFunc(c.fleet.Machines, func(m Machine) bool { return m.Name == candidate.Machine })
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

func outdatedNode(m *Machine, n *Node) bool {
	return n.KeyHash != newKey || m.Awaits && n.Version != newVersion
}

// For any order of events, the policy deletes no Machine that was never configured and no Machine of a set with a
// failed Machine. It never deletes the last working Machine of a set. Once no other events occur, all Machines are
// replaced that were configured with another key or that await another version.
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
				t.Fatalf("%+v with %+v was forgotten: %+v", m, n, Next(c.fleet, newVersion, c.key))
			}
		}
	})
}
