package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// machineResource are Machines of the Machine API, which a cluster need not have.
var machineResource = machinev1beta1.GroupVersion.WithResource("machines")

// servedInterval is how often the API server is asked for a resource that it did not have.
const servedInterval = time.Minute

// whenServed runs what works with a resource that a cluster need not have, once the API server has it: from the start
// of the operator or from any time after. It is a Runnable of the manager. R-052
type whenServed struct {
	manager  ctrl.Manager
	resource schema.GroupVersionResource
	// served asks the API server.
	served func(ctx context.Context, resource schema.GroupVersionResource) (bool, error)
	// missing is called when the API server says that it does not have the resource, until it has once gone well; nil for
	// nothing.
	missing func(ctx context.Context) error
	// setUp adds the controllers to a manager. It is called until it finds the resource. An error other than that the API
	// server has it no longer ends the operator.
	setUp func(mgr ctrl.Manager) error
	clock clock.WithTicker
	log   logr.Logger
}

// Start implements manager.Runnable.
func (w *whenServed) Start(ctx context.Context) error {
	ticker := w.clock.NewTicker(servedInterval)
	defer ticker.Stop()
	log, told := w.log.WithValues("resource", w.resource.GroupResource().String()), ""
	for {
		served, err := w.served(ctx, w.resource)
		if ctx.Err() != nil {
			return nil
		}
		if served {
			log.Info("the API server serves the resource; starting the controllers that need it")
			added := &additions{Manager: w.manager}
			err := w.setUp(added)
			if err == nil {
				return added.run(ctx)
			}
			if !meta.IsNoMatchError(err) {
				return fmt.Errorf("start what depends on %s: %w", w.resource.GroupResource(), err)
			}
		}
		why := "the API server does not have it"
		if err == nil {
			err = w.without(ctx)
		}
		if err != nil {
			why = err.Error()
		}
		if why != told {
			log.Info("controllers that need the resource wait for it; the rest of the operator works", "why", why, "askedEach",
				servedInterval.String())
			told = why
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// additions is a manager that keeps what is added to it. controller-runtime's own may not be given anything by what it
// runs: when it is to stop at that moment, adding waits for stopping, and stopping for adding.
type additions struct {
	ctrl.Manager
	runnables []manager.Runnable
}

// Add implements manager.Manager.
func (a *additions) Add(runnable manager.Runnable) error {
	a.runnables = append(a.runnables, runnable)
	return nil
}

// run runs all that was added until the context ends, or until one of them fails.
func (a *additions) run(ctx context.Context) error {
	together, ctx := errgroup.WithContext(ctx)
	for _, runnable := range a.runnables {
		together.Go(func() error { return runnable.Start(ctx) })
	}
	return together.Wait()
}

// without does what is to be done where the API server does not have the resource.
func (w *whenServed) without(ctx context.Context) error {
	if w.missing == nil {
		return nil
	}
	if err := w.missing(ctx); err != nil {
		return fmt.Errorf("the API server does not have it, and the operator could not respond to that: %w", err)
	}
	w.missing = nil
	return nil
}

// servedBy asks the API server whether it has a resource. One that has not the group and version does not have the
// resource.
func servedBy(api rest.Interface) func(context.Context, schema.GroupVersionResource) (bool, error) {
	return func(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
		list := &metav1.APIResourceList{}
		err := api.Get().AbsPath("/apis", resource.Group, resource.Version).Do(ctx).Into(list)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("ask the API server for %s: %w", resource.GroupVersion(), err)
		}
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Name == resource.Resource
		}), nil
	}
}
