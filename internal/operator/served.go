package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/windows-machine-config/wmco/internal/cluster"
)

// The kinds of the Machine API, which is optional in a cluster.
var (
	machineKind    = machinev1beta1.GroupVersion.WithKind("Machine")
	machineSetKind = machinev1beta1.GroupVersion.WithKind("MachineSet")
)

// servedInterval is the interval between checks of the kinds that the API server serves.
const servedInterval = 30 * time.Second

// servedKinds holds the optional kinds that the API server serves. The operator reads these kinds once at the
// start and sets up the controllers accordingly. When the kinds change, the operator ends, and Kubernetes
// restarts it. servedKinds is a Runnable of the manager. R-052
type servedKinds struct {
	read    func(ctx context.Context) (sets.Set[schema.GroupVersionKind], error)
	all     int // number of requested kinds
	atStart sets.Set[schema.GroupVersionKind]
	// suspected has a value after a request for Machines returned a response as if no Machine API existed.
	suspected chan struct{}
	restart   func()
	clock     clock.WithTicker
	log       logr.Logger
}

// optionalKinds returns the kinds that are optional in a cluster and that change the behavior of the operator.
func optionalKinds(scheme *runtime.Scheme) ([]schema.GroupVersionKind, error) {
	kinds := []schema.GroupVersionKind{machineKind, machineSetKind}
	for _, watched := range cluster.OptionalObjects() {
		kind, err := apiutil.GVKForObject(watched.Object, scheme)
		if err != nil {
			return nil, fmt.Errorf("find the kind of %T: %w", watched.Object, err)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// readServed reads the optional kinds that the API server serves. Failed reads are retried until
// DefaultReadTimeout or the configured limit.
func (c Config) readServed(ctx context.Context, mgr ctrl.Manager, missing *unreadableKinds, restart func()) (*servedKinds, error) {
	clientset, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("create a client for the API server: %w", err)
	}
	kinds, err := optionalKinds(mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	s := &servedKinds{all: len(kinds), suspected: make(chan struct{}, 1), restart: restart, clock: c.Clock, log: c.Logger}
	s.read = func(ctx context.Context) (sets.Set[schema.GroupVersionKind], error) {
		return readKinds(ctx, clientset.RESTClient(), kinds)
	}
	err = missing.retryAtStart(ctx, "the optional kinds", func() error {
		if s.atStart, err = s.readTwice(ctx); err != nil {
			return err
		}
		for kind := range s.atStart {
			_, unknown := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version) // may be stale
			err = errors.Join(err, unknown)
		}
		return err
	})
	return s, err
}

// readTwice reads the kinds until two consecutive reads find the same missing kinds: a starting API server
// lacks kinds temporarily.
func (s *servedKinds) readTwice(ctx context.Context) (sets.Set[schema.GroupVersionKind], error) {
	served, err := s.read(ctx)
	for err == nil && len(served) < s.all {
		timer := s.clock.NewTimer(startRetryDelay)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
		before := served
		if served, err = s.read(ctx); served.Equal(before) {
			break
		}
	}
	return served, err
}

// isServed reports whether the API server served the kind at the start of the operator.
func (s *servedKinds) isServed(kind schema.GroupVersionKind) bool { return s.atStart.Has(kind) }

// hasMachineAPI reports whether the API server served the Machine API at the start of the operator.
func (s *servedKinds) hasMachineAPI() bool { return s.atStart.HasAll(machineKind, machineSetKind) }

// readKinds returns the kinds that the API server serves, out of the given kinds.
func readKinds(ctx context.Context, api rest.Interface, kinds []schema.GroupVersionKind) (sets.Set[schema.GroupVersionKind], error) {
	versions, served := sets.New[schema.GroupVersion](), sets.New[schema.GroupVersionKind]()
	for _, kind := range kinds {
		versions.Insert(kind.GroupVersion())
	}
	for version := range versions {
		var list metav1.APIResourceList
		err := api.Get().AbsPath("/apis", version.Group, version.Version).Do(ctx).Into(&list)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read the kinds of %s: %w", version, err)
		}
		for _, resource := range list.APIResources {
			served.Insert(version.WithKind(resource.Kind))
		}
	}
	return served.Intersection(sets.New(kinds...)), nil
}

// Start implements manager.Runnable. It checks the kinds while a kind is missing, or if the Machine API seems
// to be missing. Two consecutive checks must find the same difference.
func (s *servedKinds) Start(ctx context.Context) error {
	ticker := s.clock.NewTicker(servedInterval)
	defer ticker.Stop()
	before, checks := s.atStart, len(s.atStart) < s.all
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.suspected:
			checks = true
			continue
		case <-ticker.C():
		}
		if !checks {
			continue
		}
		served, err := s.read(ctx)
		if err != nil {
			continue // other components report an unreachable API server
		}
		if !served.Equal(s.atStart) && served.Equal(before) {
			s.log.Info("the kinds served by the API server have changed since the start of the operator; the operator exits, so that Kubernetes restarts it",
				"new", describeKinds(served.Difference(s.atStart)), "missing", describeKinds(s.atStart.Difference(served)))
			s.restart()
			return nil
		}
		before, checks = served, len(served) < s.all || !served.Equal(s.atStart)
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: an operator that waits for leadership must be
// up to date, too.
func (s *servedKinds) NeedLeaderElection() bool { return false }

func describeKinds(kinds sets.Set[schema.GroupVersionKind]) []string {
	names := sets.New[string]()
	for kind := range kinds {
		names.Insert(kind.GroupKind().String())
	}
	return sets.List(names)
}

// newMachineReader returns a reader with knowledge of the Machine API. The mapper of controller-runtime remembers kinds
// that the API server no longer serves, and requests for them get an ambiguous 404.
func (s *servedKinds) newMachineReader(live client.Reader) client.Reader {
	return machineReader{live, s}
}

type machineReader struct {
	client.Reader
	*servedKinds
}

// Get implements client.Reader.
func (r machineReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if isOfMachineAPI(object) && !r.hasMachineAPI() {
		return noMachineAPI()
	}
	return r.Reader.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (r machineReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if !isOfMachineAPI(list) {
		return r.Reader.List(ctx, list, options...)
	}
	if !r.hasMachineAPI() {
		return noMachineAPI()
	}
	err := r.Reader.List(ctx, list, options...)
	if cluster.IsAbsent(err) {
		select {
		case r.suspected <- struct{}{}:
		default: // already set
		}
	}
	return err
}

func isOfMachineAPI(object runtime.Object) bool {
	switch object.(type) {
	case *machinev1beta1.Machine, *machinev1beta1.MachineList, *machinev1beta1.MachineSet, *machinev1beta1.MachineSetList:
		return true
	}
	return false
}

func noMachineAPI() error {
	return &meta.NoKindMatchError{GroupKind: machineKind.GroupKind(), SearchedVersions: []string{machineKind.Version}}
}
