package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// AvailabilityOptions say what is followed beside nodes.
type AvailabilityOptions struct {
	// PodNamespace and PodLabels select pods whose healthy number is followed; none without labels.
	PodNamespace string
	PodLabels    map[string]string
	// Except are Machines and bring-your-own hosts that never count: the test itself breaks them.
	Except []string
}

// Availability follows Nodes, Machines, pods, what the operator says that it disturbs, and the journals of hosts, each change in its
// order, from WatchAvailability to Report.
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

// followedKind is a kind that is watched.
type followedKind struct {
	name      string
	list      func() client.ObjectList
	options   []client.ListOption
	revisions map[string]uint64 // of each object, as last seen
}

// WatchAvailability begins to follow. It returns when the present is known.
func (r *Rig) WatchAvailability(ctx context.Context, options AvailabilityOptions) (*Availability, error) {
	following, stop := context.WithCancel(r.running)
	a := &Availability{rig: r, options: options, stop: stop, started: r.options.Clock.Now(), wakeAfter: make(chan struct{})}
	a.kinds = []*followedKind{
		{name: kindNode, list: func() client.ObjectList { return &corev1.NodeList{} }},
		{name: kindPolicy, list: func() client.ObjectList { return &v1alpha1.WindowsDisruptionPolicyList{} },
			options: []client.ListOption{client.InNamespace(r.Namespace())}},
	}
	if r.options.MachineAPI {
		a.kinds = append(a.kinds, &followedKind{name: kindMachine, list: func() client.ObjectList { return &machinev1.MachineList{} },
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

// catchLost records each state that a kind went through after the revision from, which a watch does not tell any more: the API server's store
// still has them. It returns the revision to watch from.
func (a *Availability) catchLost(ctx context.Context, kind *followedKind, from string) (string, error) {
	list := kind.list()
	if err := a.rig.Client.List(ctx, list, kind.options...); err != nil {
		return from, fmt.Errorf("list %s: %w", kind.name, err)
	}
	first, err := revisionOf(from)
	if err != nil {
		return from, err
	}
	last, err := revisionOf(list.GetResourceVersion())
	if err != nil {
		return from, err
	}
	for revision := first + 1; revision <= last; revision++ {
		at := strconv.FormatUint(revision, 10)
		_, err := a.listAt(ctx, kind, &client.ListOptions{Raw: &metav1.ListOptions{
			ResourceVersion: at, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		}})
		if err != nil {
			return from, err
		}
		from = at
	}
	return from, nil
}

// listAt records what a list has that is not known, and returns the revision to watch from.
func (a *Availability) listAt(ctx context.Context, kind *followedKind, at ...client.ListOption) (string, error) {
	list := kind.list()
	if err := a.rig.Client.List(ctx, list, append(slices.Clone(kind.options), at...)...); err != nil {
		return "", fmt.Errorf("list %s: %w", kind.name, err)
	}
	revision, err := revisionOf(list.GetResourceVersion())
	if err != nil {
		return "", err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return "", err
	}
	there := map[string]bool{}
	for _, item := range items {
		object, ok := item.(client.Object)
		if !ok {
			return "", fmt.Errorf("a list of %s has a %T", kind.name, item)
		}
		there[keyOf(object)] = true
		if err := a.record(kind, object, false); err != nil {
			return "", err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range kind.revisions {
		if !there[name] {
			delete(kind.revisions, name)
			a.add(change{revision: revision, at: a.now(), kind: kind.name, name: name})
		}
	}
	return list.GetResourceVersion(), nil
}

// follow watches a kind until ctx is done. Where a watch ends it goes on after the last change it has told.
func (a *Availability) follow(ctx context.Context, kind *followedKind, revision string) {
	for ctx.Err() == nil {
		err := a.watch(ctx, kind, &revision)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			a.mu.Lock()
			a.lost++
			a.mu.Unlock()
			if revision, err = a.catchLost(ctx, kind, revision); err == nil {
				continue
			}
		}
		if err != nil { // The API server may be away, for a test that wants it so.
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// watch records what a watch tells until it ends.
func (a *Availability) watch(ctx context.Context, kind *followedKind, revision *string) error {
	options := append(slices.Clone(kind.options), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: *revision, AllowWatchBookmarks: true},
	})
	list := kind.list()
	watcher, err := a.rig.Client.Watch(ctx, list, options...)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(client.Object)
		if !ok {
			return fmt.Errorf("a watch of %s tells of a %T", kind.name, event.Object)
		}
		*revision = object.GetResourceVersion()
		if event.Type == watch.Bookmark {
			continue
		}
		if err := a.record(kind, object, event.Type == watch.Deleted); err != nil {
			return err
		}
	}
	return nil
}

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

// Report tells what has happened until now, and goes on following. It waits until everything that the API server has was told.
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

// catchUp waits until the watch has told all that a list has.
func (a *Availability) catchUp(ctx context.Context, kind *followedKind) error {
	list := kind.list()
	if err := a.rig.Client.List(ctx, list, kind.options...); err != nil {
		return err
	}
	want := map[string]uint64{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("a list of %s has a %T", kind.name, item)
		}
		revision, err := revisionOf(object.GetResourceVersion())
		want[keyOf(object)] = revision
		return err
	})
	if err != nil {
		return err
	}
	until, err := revisionOf(list.GetResourceVersion())
	if err != nil {
		return err
	}
	for {
		a.mu.Lock()
		known, news := kind.knows(want, until), a.wakeAfter
		a.mu.Unlock()
		if known {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("the watch of %s is behind: %w", kind.name, context.Cause(ctx))
		case <-a.rig.running.Done():
			return errors.Join(errClosed, context.Cause(a.rig.running))
		}
	}
}

// knows tells whether all that a list of the revision until has was told, and the end of all that it has not.
func (k *followedKind) knows(want map[string]uint64, until uint64) bool {
	for name, revision := range want {
		// What is not known any more has ended after the list was made.
		if known, there := k.revisions[name]; there && known < revision {
			return false
		}
	}
	for name, revision := range k.revisions {
		if _, there := want[name]; !there && revision <= until {
			return false
		}
	}
	return true
}

func revisionOf(resourceVersion string) (uint64, error) {
	revision, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the API server has a resourceVersion that is no number: %w", err)
	}
	return revision, nil
}

func keyOf(object client.Object) string { return client.ObjectKeyFromObject(object).String() }
