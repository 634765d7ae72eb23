// Package install creates objects quickly in a cluster that is starting: all concurrently, each object as soon
// as its kind is served.
package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// poll is the retry interval for a resource that is not served yet: long enough not to dominate the cost of a
// start.
const poll = 100 * time.Millisecond

// Install creates the objects, and returns when all exist and discovery lists every kind in crds. The cluster
// already has these definitions. The spec of an existing object is kept, and the status is written again.
func Install(ctx context.Context, config *rest.Config, crds, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	resources, err := newResources(crds)
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, object := range objects {
		r, err := resources.of(object)
		if err != nil {
			return err
		}
		group.Go(func() error { return create(groupCtx, client, r, object) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return waitDiscovered(ctx, config, resources.defined)
}

// create creates the object and sets the status. It waits until the kind and the namespace exist.
func create(ctx context.Context, client dynamic.Interface, r resource, object *unstructured.Unstructured) error {
	target := r.client(client, object.GetNamespace())
	err := retry(ctx, func(ctx context.Context) error {
		_, err := target.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	status, ok := object.Object["status"]
	if !r.status || !ok {
		return nil
	}
	err = retry(ctx, func(ctx context.Context) error { return setStatus(ctx, target, object.GetName(), status) })
	if err != nil {
		return fmt.Errorf("set the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// setStatus uses an update, because a patch cannot set null, which some required fields are.
func setStatus(ctx context.Context, target dynamic.ResourceInterface, name string, status any) error {
	object, err := target.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	object.Object["status"] = status
	_, err = target.UpdateStatus(ctx, object, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// retry retries until success or an error that is not temporary.
func retry(ctx context.Context, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		if last != nil && !notYet(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil && !errors.Is(last, err) {
		return errors.Join(err, last)
	}
	return err
}

// notYet reports whether an error is temporary while a cluster starts: a kind is not served yet, a namespace
// does not exist yet, or the caches of admission are not filled yet.
func notYet(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) ||
		apierrors.IsForbidden(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// waitDiscovered waits until discovery lists all resources, because clients build REST mappings from discovery.
func waitDiscovered(ctx context.Context, config *rest.Config, want []schema.GroupVersionResource) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	var missing []schema.GroupVersionResource
	err = wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		_, served, _, err := client.GroupsAndMaybeResources()
		if err != nil {
			return false, nil // until the aggregator has detected the new groups
		}
		missing = missing[:0]
		for _, r := range want {
			if !lists(served[r.GroupVersion()], r.Resource) {
				missing = append(missing, r)
			}
		}
		return len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait for discovery to list %v: %w", missing, err)
	}
	return nil
}

func lists(list *metav1.APIResourceList, name string) bool {
	if list == nil {
		return false
	}
	for _, r := range list.APIResources {
		if r.Name == name {
			return true
		}
	}
	return false
}
