// Package operator puts the controllers together and runs them.
package operator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/clusterconfig"
	"github.com/windows-machine-config/wmco/internal/controller/csr"
	"github.com/windows-machine-config/wmco/internal/controller/instance"
	"github.com/windows-machine-config/wmco/internal/controller/keys"
	"github.com/windows-machine-config/wmco/internal/controller/source/byoh"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// Config is everything that the operator is told from outside.
type Config struct {
	RESTConfig *rest.Config
	// Namespace is the operator's own: Secret, ConfigMap and WindowsInstances are there and nowhere else.
	Namespace string
	Version   string
	// PayloadDirectory holds what is brought to hosts; CacheDirectory may be written to and lost.
	PayloadDirectory, CacheDirectory string
	// Dial connects to hosts; nil is a plain TCP dialer.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Clock clock.WithTicker
	// MetricsAddress and ProbeAddress are host:port; "0" turns the server off.
	MetricsAddress, ProbeAddress string
	LeaderElection               bool
	Debug                        bool
	Log                          nodespec.LogSettings
	Logger                       logr.Logger
	// SkipNameValidation allows a second operator in one process, as tests need it.
	SkipNameValidation bool
}

// Run runs the operator until the context ends or something fails that it cannot go on without.
func Run(ctx context.Context, c Config) error {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	if c.RESTConfig.QPS == 0 {
		// The API server's priority and fairness protects it. A limit here would make the progress of many hosts at once hold up the
		// work on each of them.
		c.RESTConfig = rest.CopyConfig(c.RESTConfig)
		c.RESTConfig.QPS = -1
	}
	mgr, err := ctrl.NewManager(c.RESTConfig, c.managerOptions(scheme))
	if err != nil {
		return fmt.Errorf("set up the operator: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return fmt.Errorf("set up the operator's probes: %w", err)
	}
	pool, err := c.addControllers(mgr)
	if err != nil {
		return err
	}
	defer pool.CloseAll()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the operator: %w", err)
	}
	return nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, cluster.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	return scheme, nil
}

// managerOptions keep in memory only what the operator works with: its own namespace, Windows nodes, and requests of kubelets.
func (c Config) managerOptions(scheme *runtime.Scheme) manager.Options {
	own := map[string]cache.Config{c.Namespace: {}}
	named := func(name string) cache.ByObject {
		return cache.ByObject{Namespaces: map[string]cache.Config{c.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", name)}}}
	}
	return manager.Options{
		Scheme: scheme, Logger: c.Logger,
		Metrics:                metricsserver.Options{BindAddress: c.MetricsAddress},
		HealthProbeBindAddress: c.ProbeAddress,
		LeaderElection:         c.LeaderElection, LeaderElectionID: "windows-machine-config-operator", LeaderElectionNamespace: c.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: &c.SkipNameValidation},
		Cache: cache.Options{
			DefaultNamespaces: own,
			DefaultTransform:  cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Node{}:      {Label: labels.SelectorFromSet(labels.Set{corev1.LabelOSStable: "windows"})},
				&corev1.Secret{}:    named(keys.SecretName),
				&corev1.ConfigMap{}: named(byoh.ConfigMapName),
				&certificatesv1.CertificateSigningRequest{}: {
					Field: fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeletServingSignerName)},
			},
		},
	}
}

func (c Config) addControllers(mgr ctrl.Manager) (*remote.Pool, error) {
	clientset, err := kubernetes.NewForConfig(c.RESTConfig)
	if err != nil {
		return nil, fmt.Errorf("make a client for the API server: %w", err)
	}
	files, err := payload.Load(c.PayloadDirectory)
	if err != nil {
		return nil, err
	}
	for _, gap := range files.Gaps() {
		c.Logger.Info("hosts cannot get a component of the payload", "why", gap.Error())
	}
	packer, err := payload.NewPacker(files, c.CacheDirectory)
	if err != nil {
		return nil, err
	}
	pool := remote.NewPool(&remote.Dialer{Dial: c.Dial, Clock: c.Clock})
	changed := make(chan event.GenericEvent, 1)
	source := clusterconfig.NewSource(mgr.GetAPIReader(), c.Namespace, changed)

	recorder := mgr.GetEventRecorder("windows-machine-config-operator")
	reconciler := &instance.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clientset: clientset, Events: recorder, Clock: c.Clock,
		Namespace: c.Namespace, Version: c.Version, Cluster: source, Payload: files, Packer: packer, Hosts: pool, Dial: c.Dial,
		Log: c.Log, Debug: c.Debug, Jitter: rand.Float64,
	}
	for _, setup := range []func() error{
		func() error { return source.SetupWithManager(mgr) },
		func() error {
			return (&byoh.Reconciler{Client: mgr.GetClient(), Namespace: c.Namespace, Events: recorder}).SetupWithManager(mgr)
		},
		func() error {
			return (&keys.Reconciler{Client: mgr.GetClient(), Namespace: c.Namespace, Events: recorder}).SetupWithManager(mgr)
		},
		func() error {
			return (&csr.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clientset: clientset, Namespace: c.Namespace, Events: recorder}).SetupWithManager(mgr)
		},
		func() error { return reconciler.SetupWithManager(mgr, changed) },
	} {
		if err := setup(); err != nil {
			return nil, fmt.Errorf("set up a controller: %w", err)
		}
	}
	return pool, nil
}
