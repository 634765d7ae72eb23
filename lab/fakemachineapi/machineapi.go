// Package fakemachineapi simulates OpenShift's Machine API. It creates virtual machines for Machines, and Machines
// for MachineSets, links Machines to their Nodes, and replaces unhealthy Machines. It uses a real API server,
// and a [Cloud] creates the virtual machines.
//
// It follows the documentation of the Machine API, except:
//   - There is no admission or defaulting by webhooks: a configuration that the webhooks would refuse makes its
//     Machine Failed instead.
//   - Configurations of platforms are read without their types: only image, type, region, zone, the subnet's name and
//     the Secret of the user data are used.
//   - One controller combines the Machine controller, drain controller and nodelink controller. A drain evicts and
//     retries later, whereas the Machine API waits up to 20 s for each attempt. Control plane nodes are drained
//     independently.
//   - The state of virtual machines is polled, because platforms send no notifications.
//   - MachineHealthChecks with a remediationTemplate remediate nothing.
package fakemachineapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	machinev1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options configure the Machine API.
type Options struct {
	// Cloud creates the virtual machines. Required.
	Cloud Cloud
	// Platform is the platform type of the Infrastructure. Default: the type in the cluster's Infrastructure.
	Platform string
	// Namespace is the namespace of the Machines. Default: [Namespace].
	Namespace string
	// Clock is the clock for all delays and timeouts. Default: the real clock.
	Clock clock.WithTicker
	// Logger receives the actions. Default: nothing is logged.
	Logger *slog.Logger
	// Workers is the number of Machines that are reconciled concurrently. Default: 10.
	Workers int
	// BareNodes disables the copying of labels and taints from Machines to Nodes, so that a test detects
	// whether another writer sets them.
	BareNodes bool
}

const (
	defaultWorkers = 10
	// pendingInterval is the interval between reads of a virtual machine while a change is expected,
	// stableInterval otherwise.
	pendingInterval = 500 * time.Millisecond
	stableInterval  = 5 * time.Second
	// minRetryDelay and maxRetryDelay are the minimum and maximum backoff after errors.
	minRetryDelay, maxRetryDelay = 50 * time.Millisecond, 3 * time.Second
)

// Run runs the Machine API with an administrator's configuration until ctx is done. An error means that the
// start failed.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	if err := run(ctx, config, o); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run the Machine API: %w", err)
	}
	return nil
}

func run(ctx context.Context, config *rest.Config, o Options) error {
	if o.Cloud == nil {
		return errors.New("Options.Cloud is missing: nothing could make virtual machines")
	}
	o.Namespace = cmp.Or(o.Namespace, Namespace)
	o.Workers = cmp.Or(o.Workers, defaultWorkers)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, "lab Machine API"
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	if o.Platform == "" {
		if o.Platform, err = readPlatform(ctx, mgr.GetAPIReader()); err != nil {
			return err
		}
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	b := base{Client: mgr.GetClient(), Options: o, live: mgr.GetAPIReader(), events: mgr.GetEventRecorder("machine-api")}
	machines := &machineReconciler{base: b, clientset: clientset}
	sets, checks := &machineSetReconciler{base: b}, &healthCheckReconciler{base: b}
	if err := errors.Join(machines.setUp(mgr), sets.setUp(mgr), checks.setUp(mgr)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(restConfig *rest.Config, o Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, machinev1.Install, configv1.Install} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	return ctrl.NewManager(restConfig, manager.Options{
		Scheme:     scheme,
		Logger:     logr.FromSlogHandler(o.Logger.Handler()),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{o.Namespace: {}}},
		// Secrets of the cluster must not be cached.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: uncachedObjects()}},
	})
}

func readPlatform(ctx context.Context, live client.Reader) (string, error) {
	infrastructure := &configv1.Infrastructure{}
	if err := live.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		return "", fmt.Errorf("learn the platform from the cluster's Infrastructure: %w", err)
	}
	if status := infrastructure.Status.PlatformStatus; status != nil {
		return string(status.Type), nil
	}
	return string(configv1.NonePlatformType), nil
}

// controllerOptions returns the options of a controller with a queue that uses the clock of o.
func (o Options) controllerOptions(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay,
			maxRetryDelay),
		NewQueue: func(name string,
			limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
				workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: o.Clock})
		},
	}
}
