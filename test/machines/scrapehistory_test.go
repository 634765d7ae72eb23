package machines

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
)

// target is an address that Prometheus scrapes, or that a Node has.
type target struct {
	node string
	uid  types.UID
	ip   string
}

// change is an observed change of a Node or of an EndpointSlice of the exporters.
type change struct {
	// version is the resource version. On the API server, versions of all kinds are comparable.
	version uint64
	slice   bool
	object  string
	// targets lists the addresses after the change, none for a deleted object.
	targets []target
}

// scrapeFaults returns the faults in a history of changes: addresses without a Node at that time, and an empty list
// after the first address.
func scrapeFaults(history []change) (faults []string) {
	slices.SortStableFunc(history, func(a, b change) int { return cmp.Compare(a.version, b.version) })
	nodes, listed := map[string][]target{}, map[string][]target{}
	start := false
	for _, c := range history {
		if c.slice {
			listed[c.object] = c.targets
		} else {
			nodes[c.object] = c.targets
		}
		count := 0
		for _, t := range slices.Concat(slices.Collect(maps.Values(listed))...) {
			count++
			if !slices.Contains(nodes[t.node], t) {
				faults = append(faults, fmt.Sprintf("at %d, %s of Node %s (%s) is listed, and that Node is not there", c.version, t.ip, t.node, t.uid))
			}
		}
		start = start || count > 0
		if start && count == 0 {
			faults = append(faults, fmt.Sprintf("at %d, no address is listed", c.version))
		}
	}
	return faults
}

func TestScrapeFaults(t *testing.T) {
	a, b := target{"a", "1", "10.0.0.1"}, target{"b", "2", "10.0.0.2"}
	node := func(version uint64, name string, targets ...target) change {
		return change{version, false, name, targets}
	}
	slice := func(version uint64, name string, targets ...target) change {
		return change{version, true, name, targets}
	}
	for name, c := range map[string]struct {
		history []change
		want    string
	}{
		"nothing was ever listed":           {[]change{node(1, "a", a)}, ""},
		"one after another":                 {[]change{node(1, "a", a), slice(2, "s", a), node(3, "b", b), slice(4, "s", a, b), slice(5, "s", b), node(6, "a")}, ""},
		"from one slice to another":         {[]change{node(1, "a", a), node(1, "b", b), slice(2, "s", a), slice(3, "r", b), slice(4, "s")}, ""},
		"the watches came in another order": {[]change{slice(2, "s", a), node(1, "a", a)}, ""},
		"empty for a moment":                {[]change{node(1, "a", a), slice(2, "s", a), slice(3, "s"), slice(4, "s", a)}, "at 3, no address"},
		"longer than its Node":              {[]change{node(1, "a", a), slice(2, "s", a), node(3, "a"), slice(4, "s")}, "at 3, 10.0.0.1 of Node a"},
		"before its Node":                   {[]change{slice(1, "s", a), node(2, "a", a)}, "at 1, 10.0.0.1 of Node a"},
		"an address of its Node's before":   {[]change{node(1, "a", target{"a", "1", "10.0.0.9"}), slice(2, "s", a)}, "at 2, 10.0.0.1 of Node a"},
		"a Node of that name before it":     {[]change{node(1, "a", target{"a", "0", "10.0.0.1"}), slice(2, "s", a)}, "at 2, 10.0.0.1 of Node a (1)"},
	} {
		t.Run(name, func(t *testing.T) {
			faults := scrapeFaults(c.history)
			if (len(faults) == 0) != (c.want == "") || len(faults) > 0 && !strings.Contains(faults[0], c.want) {
				t.Errorf("got %q, want %q", faults, c.want)
			}
		})
	}
}

// recording is the history of the exporters' EndpointSlices and of the Nodes since its start.
type recording struct {
	mu      sync.Mutex
	changes []change
}

// recordScrapes records the history until the test ends.
func (l lab) recordScrapes() *recording {
	l.Helper()
	r := &recording{}
	follow := func(list client.ObjectList, options ...client.ListOption) {
		watched, err := l.Client.Watch(l.Context(), list, options...)
		l.requireNoError(err)
		ended := make(chan struct{})
		l.Cleanup(func() { watched.Stop(); <-ended })
		go func() {
			defer close(ended)
			for event := range watched.ResultChan() {
				r.recordEvent(event)
			}
		}()
	}
	follow(&corev1.NodeList{})
	follow(&discoveryv1.EndpointSliceList{}, client.InNamespace(l.Namespace()),
		client.MatchingLabels{discoveryv1.LabelServiceName: monitoring.Name})
	return r
}

func (r *recording) recordEvent(event watch.Event) {
	object, ok := event.Object.(client.Object)
	if !ok {
		return
	}
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	recorded := change{version: version, object: object.GetName()}
	switch found := object.(type) {
	case *corev1.Node:
		for _, address := range found.Status.Addresses {
			recorded.targets = append(recorded.targets, target{found.Name, found.UID, address.Address})
		}
	case *discoveryv1.EndpointSlice:
		recorded.slice = true
		for _, e := range found.Endpoints {
			recorded.targets = append(recorded.targets, target{e.TargetRef.Name, e.TargetRef.UID, e.Addresses[0]})
		}
	}
	if event.Type == watch.Deleted {
		recorded.targets = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, recorded)
}

// waitForChanges waits until the watches have reached the current state of the API server, and returns the history.
func (r *recording) waitForChanges(l lab, what string, condition func([]change) bool) (history []change) {
	l.Helper()
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, what, &corev1.Node{}, func(context.Context, client.Reader) (bool, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			history = slices.Clone(r.changes)
			return condition(history), nil
		})
	})
	return history
}
