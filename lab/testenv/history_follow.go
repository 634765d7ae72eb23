package testenv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FollowedKind is a kind of objects that a History records.
type FollowedKind struct {
	// Name is the name of the kind in changes.
	Name string
	// List returns an empty list of the kind, and Options select the objects to follow.
	List    func() client.ObjectList
	Options []client.ListOption

	revisions map[string]uint64 // of each object, as last seen
}

// recordMissed records each state of a kind after the revision from that a watch no longer reports: the API server's
// store still has these states. It returns the revision for the next watch.
func (h *History) recordMissed(ctx context.Context, kind *FollowedKind, from string) (string, error) {
	list := kind.List()
	if err := h.env.Client.List(ctx, list, kind.Options...); err != nil {
		return from, fmt.Errorf("list %s: %w", kind.Name, err)
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
		_, err := h.listAt(ctx, kind, &client.ListOptions{Raw: &metav1.ListOptions{
			ResourceVersion: at, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		}})
		if err != nil {
			return from, err
		}
		from = at
	}
	return from, nil
}

// listAt records the unknown states in a list, and returns the revision for the next watch.
func (h *History) listAt(ctx context.Context, kind *FollowedKind, at ...client.ListOption) (string, error) {
	list := kind.List()
	if err := h.env.Client.List(ctx, list, append(slices.Clone(kind.Options), at...)...); err != nil {
		return "", fmt.Errorf("list %s: %w", kind.Name, err)
	}
	revision, err := revisionOf(list.GetResourceVersion())
	if err != nil {
		return "", err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return "", err
	}
	present := map[string]bool{}
	for _, item := range items {
		object, ok := item.(client.Object)
		if !ok {
			return "", fmt.Errorf("a list of %s has a %T", kind.Name, item)
		}
		present[keyOf(object)] = true
		if err := h.recordObject(kind, object, false); err != nil {
			return "", err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range kind.revisions {
		if !present[name] {
			delete(kind.revisions, name)
			h.appendChange(Change{Revision: revision, At: h.currentTime(), Kind: kind.Name, Name: name})
		}
	}
	return list.GetResourceVersion(), nil
}

// followKind watches a kind until ctx is done. After an interruption it resumes after the last reported change.
func (h *History) followKind(ctx context.Context, kind *FollowedKind, revision string) {
	for ctx.Err() == nil {
		err := h.watchKind(ctx, kind, &revision)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			h.mu.Lock()
			h.lost++
			h.mu.Unlock()
			if revision, err = h.recordMissed(ctx, kind, revision); err == nil {
				continue
			}
		}
		if err != nil { // A test may have stopped the API server.
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// watchKind records the events of a watch until the watch ends.
func (h *History) watchKind(ctx context.Context, kind *FollowedKind, revision *string) error {
	options := append(slices.Clone(kind.Options), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: *revision, AllowWatchBookmarks: true},
	})
	list := kind.List()
	watcher, err := h.env.Client.Watch(ctx, list, options...)
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
			return fmt.Errorf("a watch of %s tells of a %T", kind.Name, event.Object)
		}
		*revision = object.GetResourceVersion()
		if event.Type == watch.Bookmark {
			continue
		}
		if err := h.recordObject(kind, object, event.Type == watch.Deleted); err != nil {
			return err
		}
	}
	return nil
}

// catchUp waits until the watch has reported all objects of a list.
func (h *History) catchUp(ctx context.Context, kind *FollowedKind) error {
	list := kind.List()
	if err := h.env.Client.List(ctx, list, kind.Options...); err != nil {
		return err
	}
	want := map[string]uint64{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("a list of %s has a %T", kind.Name, item)
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
		h.mu.Lock()
		known, news := kind.hasSeenAll(want, until), h.wakeAfter
		h.mu.Unlock()
		if known {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("the watch of %s is behind: %w", kind.Name, context.Cause(ctx))
		case <-h.env.running.Done():
			return errors.Join(errClosed, context.Cause(h.env.running))
		}
	}
}

// hasSeenAll reports whether the watch has reported all objects of the list at the revision until, and the deletion
// of all objects missing from the list.
func (k *FollowedKind) hasSeenAll(want map[string]uint64, until uint64) bool {
	for name, revision := range want {
		// Unknown objects were deleted after the list.
		if known, exists := k.revisions[name]; exists && known < revision {
			return false
		}
	}
	for name, revision := range k.revisions {
		if _, exists := want[name]; !exists && revision <= until {
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
