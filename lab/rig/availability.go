package rig

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// AvailabilityOptions select what is followed beside nodes.
type AvailabilityOptions struct {
	// PodNamespace and PodLabels select pods whose healthy number is followed; none without labels.
	PodNamespace string
	PodLabels    map[string]string
	// Except are Machines and bring-your-own hosts that never count: the test itself breaks them.
	Except []string
}

// Availability follows Nodes, Machines, pods, the operator's list of disruptions, and the journals of hosts, each
// change in its order, from WatchAvailability to Report.
type Availability struct {
	rig     *Rig
	options AvailabilityOptions
	started time.Time
	stop    context.CancelFunc
	group   sync.WaitGroup

	mu        sync.Mutex
	kinds     []*followedKind
	initial   int // so many of the changes are the state at the beginning
	changes   []change
	lost      int           // how often a watch could not go on where it had ended
	wakeAfter chan struct{} // closed with the next change
}

// change is one object's change, or its end when object is nil.
type change struct {
	revision uint64 // of the API server's store, which has one order for all kinds
	at       time.Time
	kind     string
	name     string // with the namespace
	object   client.Object
}

// WatchAvailability begins to follow. It returns when the present is known.
func (r *Rig) WatchAvailability(ctx context.Context, options AvailabilityOptions) (*Availability, error) {
	following, stop := context.WithCancel(r.running)
	a := &Availability{rig: r, options: options, stop: stop, started: r.options.Clock.Now(),
		wakeAfter: make(chan struct{})}
	a.kinds = []*followedKind{
		{name: kindNode, list: func() client.ObjectList { return &corev1.NodeList{} }},
		{name: kindPolicy, list: func() client.ObjectList { return &v1alpha1.WindowsDisruptionPolicyList{} },
			options: []client.ListOption{client.InNamespace(r.Namespace())}},
	}
	if r.options.MachineAPI {
		a.kinds = append(a.kinds, &followedKind{name: kindMachine, list: func() client.ObjectList {
			return &machinev1.MachineList{}
		},
			options: []client.ListOption{
				client.InNamespace(v1alpha1.MachineNamespace), client.MatchingLabels{v1alpha1.LabelMachineOSID: osWindows},
			}})
	}
	if len(options.PodLabels) > 0 {
		a.kinds = append(a.kinds, &followedKind{name: kindPod, list: func() client.ObjectList { return &corev1.PodList{} },
			options: []client.ListOption{client.InNamespace(options.PodNamespace), client.MatchingLabels(options.PodLabels)}})
	}
	from := make([]string, len(a.kinds))
	for i, kind := range a.kinds {
		revision, err := a.listAt(ctx, kind)
		if err != nil {
			stop()
			return nil, fmt.Errorf("follow the availability of nodes: %w", err)
		}
		from[i] = revision
	}
	a.initial = len(a.changes)
	for i, kind := range a.kinds {
		a.group.Go(func() { a.follow(following, kind, from[i]) })
	}
	return a, nil
}

// Kinds of changes.
const (
	kindNode    = "Node"
	kindMachine = "Machine"
	kindPod     = "Pod"
	kindPolicy  = "WindowsDisruptionPolicy"
)

// record keeps an object's change, unless it is known.
func (a *Availability) record(kind *followedKind, object client.Object, deleted bool) error {
	revision, err := revisionOf(object.GetResourceVersion())
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name := keyOf(object)
	if kind.revisions == nil {
		kind.revisions = map[string]uint64{}
	}
	switch known := kind.revisions[name]; {
	case deleted:
		delete(kind.revisions, name)
		object = nil
	case known >= revision:
		return nil
	default:
		kind.revisions[name] = revision
	}
	a.add(change{revision: revision, at: a.now(), kind: kind.name, name: name, object: object})
	return nil
}

// add keeps a change. The lock is held.
func (a *Availability) add(c change) {
	a.changes = append(a.changes, c)
	close(a.wakeAfter)
	a.wakeAfter = make(chan struct{})
}

func (a *Availability) now() time.Time { return a.rig.options.Clock.Now() }

// Report returns the events until now, and continues to follow. It first waits for everything that the API server has.
func (a *Availability) Report(ctx context.Context) (AvailabilityReport, error) {
	for _, kind := range a.kinds {
		if err := a.catchUp(ctx, kind); err != nil {
			return AvailabilityReport{}, fmt.Errorf("follow the availability of nodes: %w", err)
		}
	}
	a.mu.Lock()
	initial, changes, lost := a.changes[:a.initial], slices.Clone(a.changes[a.initial:]), a.lost
	a.mu.Unlock()
	slices.SortStableFunc(changes, func(x, y change) int { return cmp.Compare(x.revision, y.revision) })
	// A change was there before one with a later revision was told.
	for i := len(changes) - 2; i >= 0; i-- {
		if changes[i+1].at.Before(changes[i].at) {
			changes[i].at = changes[i+1].at
		}
	}
	report := a.newReplay(initial).run(changes, a.journals())
	report.Lost = lost
	return report, nil
}

// Stop ends it.
func (a *Availability) Stop() {
	a.stop()
	a.group.Wait()
}

func keyOf(object client.Object) string { return client.ObjectKeyFromObject(object).String() }
