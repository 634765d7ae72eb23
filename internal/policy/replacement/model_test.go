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
	fleet        Fleet
	key          KeyChange
	createdCount int
	// MachineSets with a replaced Machine that have neither recovered nor passed the deadline
	disruptedSets map[string]bool
}

func newCloud(t *rapid.T) *cloud {
	c := &cloud{key: KeyChange{Current: newKey, UserData: true}, disruptedSets: map[string]bool{}}
	if rapid.Bool().Draw(t, "previous key") {
		c.key.Previous = oldKey
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "sets") {
		set := MachineSet{Name: fmt.Sprintf("set%d", i), Replicas: rapid.IntRange(0, 3).Draw(t, "replicas")}
		c.fleet.Sets = append(c.fleet.Sets, set)
		for range set.Replicas {
			m := c.createMachine(set.Name)
			m.Phase, m.Node, m.Refused, m.NeedsReplacement = "Running", "node-"+m.Name, rapid.Bool().Draw(t, "refused"),
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

func (c *cloud) createMachine(set string) *Machine {
	c.createdCount++
	c.fleet.Machines = append(c.fleet.Machines, Machine{Name: fmt.Sprintf("m%d", c.createdCount), Set: set})
	return &c.fleet.Machines[len(c.fleet.Machines)-1]
}

func (c *cloud) findNode(name string) *Node {
	for i := range c.fleet.Nodes {
		if name != "" && c.fleet.Nodes[i].Name == name {
			return &c.fleet.Nodes[i]
		}
	}
	return nil
}

// performStep performs the next step of a working Machine API and operator. It returns false if there is nothing to do.
func (c *cloud) performStep() bool {
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
		node := c.findNode(m.Node)
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
		case m.Phase == "Running" && node != nil && (!node.Ready && !isOutdatedNode(m, node) || node.Changing):
			node.Ready, node.Changing = true, false
		default:
			continue
		}
		return true
	}
	for i := range c.fleet.Sets {
		if set := &c.fleet.Sets[i]; set.Machines < set.Replicas {
			c.createMachine(set.Name)
			set.Machines++
			return true
		}
	}
	return false
}

// simulateEvent simulates all other events.
func (c *cloud) simulateEvent(t *rapid.T) {
	if len(c.fleet.Machines) == 0 {
		return
	}
	m := &c.fleet.Machines[rapid.IntRange(0, len(c.fleet.Machines)-1).Draw(t, "which")]
	node := c.findNode(m.Node)
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
		m.NeedsReplacement = true
	case "time":
		c.key.Known += InPlaceTimeout / 3
	}
}

// machinesOf returns the Machines of a MachineSet, and the number of Machines that run and have a working Node.
func (c *cloud) machinesOf(set string) (machines []Machine, working int) {
	for _, m := range c.fleet.Machines {
		if m.Set != set {
			continue
		}
		machines = append(machines, m)
		if n := c.findNode(m.Node); m.Phase == "Running" && !m.Deleting && n != nil && n.Ready {
			working++
		}
	}
	return machines, working
}

// canDelete allows the deletion of one Machine at a time, but no Machine of a set that lacks Machines, nor the last
// working Machine of a larger set.
func (c *cloud) canDelete(candidate Machine) bool {
	for i := range c.fleet.Sets {
		set := &c.fleet.Sets[i]
		machines, working := c.machinesOf(set.Name)
		if set.Machines = len(machines); set.Machines == set.Replicas && working == set.Replicas {
			delete(c.disruptedSets, set.Name)
		}
	}
	machines, working := c.machinesOf(candidate.Set)
	for _, m := range machines {
		if m.Deleting || m.Phase != "Running" && m.Phase != "Failed" {
			return false
		}
	}
	ready := c.findNode(candidate.Node).Ready
	set := c.fleet.Sets[slices.IndexFunc(c.fleet.Sets, func(s MachineSet) bool { return s.Name == candidate.Set })]
	return len(c.disruptedSets) == 0 && len(machines) >= set.Replicas && (!ready || len(machines) == 1 || working > 1)
}

// replaceMachine follows the policy and checks the result.
func (c *cloud) replaceMachine(t *rapid.T) bool {
	next := Next(c.fleet, newVersion, c.key)
	i := -1
	for _, candidate := range next.Candidates {
		at := slices.IndexFunc(c.fleet.Machines, func(m Machine) bool { return m.Name == candidate.Machine })
		if at < 0 {
			t.Fatalf("%+v is no Machine", candidate)
		}
		if c.canDelete(c.fleet.Machines[at]) {
			i = at
			break
		}
	}
	if i < 0 {
		return false
	}
	m := &c.fleet.Machines[i]
	node := c.findNode(m.Node)
	if node == nil || node.KeyHash == "" || !isOutdatedNode(m, node) {
		t.Fatalf("%+v is deleted, whose Node is %+v: it was never configured, or is what it should be", m, node)
	}
	machines, working := c.machinesOf(m.Set)
	for _, other := range machines {
		if other.Phase == "Failed" {
			t.Fatalf("%s is deleted while %s of its set has failed", m.Name, other.Name)
		}
	}
	if node.Ready && len(machines) > 1 && working < 2 {
		t.Fatalf("%s is deleted, the last that works of its set", m.Name)
	}
	m.Deleting, c.disruptedSets[m.Set] = true, true
	return true
}

func isOutdatedNode(m *Machine, n *Node) bool {
	return n.KeyHash != newKey || m.NeedsReplacement && n.Version != newVersion
}

// For any order of events, the policy deletes no Machine that was never configured and no Machine of a set with a
// failed Machine. It never deletes the last working Machine of a set. Once no other events occur, all Machines are
// replaced that were configured with another key or that await another version.
func TestNext_ReplacesAllOutdatedMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCloud(t)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"settle", "disturb", "replace"}).Draw(t, "next") {
			case "settle":
				c.performStep()
			case "disturb":
				c.simulateEvent(t)
			case "replace":
				c.replaceMachine(t)
			}
		}
		c.key.Known += InPlaceTimeout + time.Second
		for range 1000 {
			if c.performStep() || c.replaceMachine(t) {
				continue
			}
			if len(c.disruptedSets) == 0 {
				break
			}
			clear(c.disruptedSets) // their deadline has passed
		}
		for _, m := range c.fleet.Machines {
			if n := c.findNode(m.Node); m.Phase == "Running" && (n == nil || isOutdatedNode(&m, n) || !n.Ready) {
				t.Fatalf("%+v with %+v was forgotten: %+v", m, n, Next(c.fleet, newVersion, c.key))
			}
		}
	})
}
