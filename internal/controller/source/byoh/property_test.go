package byoh

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const worldHosts = 2

// whatever is written into the list, in whatever order, and whenever the operator is
// killed, in the end the hosts that are listed are nodes, each once, and nothing is left of the others.
func TestNoOrderOfEditsOfTheListLeavesANodeAnInstanceOrAHostBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(worldHosts)
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			w.list = drawList(t)
			for range rapid.IntRange(0, 40).Draw(t, "steps") {
				w.anything(t)
			}
		}
		w.list = drawList(t)
		w.settle(t)
		w.judge(t)
	})
}

// drawList draws what the ConfigMap lists; nil when it is deleted.
func drawList(t *rapid.T) map[string]string {
	if rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
		return nil
	}
	list := map[string]string{}
	for host := range worldHosts {
		for _, key := range keysOf(host) {
			if rapid.Bool().Draw(t, key) {
				list[key] = "username=core"
			}
		}
	}
	return list
}

// anything lets the source or an instance go a step, or kills the operator.
func (w *world) anything(t *rapid.T) {
	names := slices.Sorted(maps.Keys(w.instances))
	switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
	case what == 0 && len(w.writes) == 0:
		w.read()
	case what <= 2:
		w.write()
	case what == 3 && rapid.IntRange(0, 4).Draw(t, "killed") == 0:
		w.kill()
	case len(names) > 0:
		w.step(rapid.SampledFrom(names).Draw(t, "instance"))
	}
}

// settle lets everything go on for longer than any order of events takes.
func (w *world) settle(t *rapid.T) {
	for range 16 {
		w.read()
		for len(w.writes) > 0 {
			w.write()
		}
		for _, name := range slices.Sorted(maps.Keys(w.instances)) {
			for range 100 {
				if !w.step(name) {
					break
				}
			}
		}
	}
	w.kill()
	for _, fault := range w.broken {
		t.Error(fault)
	}
}

// judge compares the world with its list.
func (w *world) judge(t *rapid.T) {
	listed := map[string]bool{}
	for key := range w.list {
		listed[w.hosts[key].name] = true
	}
	if len(w.instances) != len(w.list) {
		t.Errorf("%d instances for %d entries: %v", len(w.instances), len(w.list), slices.Sorted(maps.Keys(w.instances)))
	}
	holders := map[string]int{}
	for _, instance := range w.instances {
		if _, ok := w.list[instance.Spec.Source.ConfigMapKey]; !ok ||
			instance.Spec.DesiredState != v1alpha1.DesiredStateNode {
			t.Errorf("%s is left: %s", instance.Name, instance.Spec.DesiredState)
		}
		ref := instance.Status.NodeRef
		if ref == nil {
			continue
		}
		node := w.nodes[ref.Name]
		if node == nil || ref.UID != string(node.UID) || node.Annotations[v1alpha1.AnnotationInstance] != instance.Name {
			t.Errorf("%s has %+v, and the Node is %+v", instance.Name, ref, node)
			continue
		}
		holders[ref.Name]++
	}
	for _, host := range w.hosts {
		want := listed[host.name]
		if node := w.nodes[host.name]; (node != nil) != want || host.configured != want || want && holders[host.name] != 1 {
			t.Errorf("%s is listed %t: configured %t, Node %v, instances with the Node %d", host.name, want, host.configured,
				node, holders[host.name])
		}
	}
}
