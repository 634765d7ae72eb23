package operator

import (
	"cmp"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/csr"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/controller/source/byoh"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,resourceNames=windows-machine-config-operator,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=system,resources=events,verbs=create

// Election holds the durations of leader election. A zero field means the default, which is OpenShift's
// recommendation for all OpenShift components (LeaderElectionDefaulting in
// github.com/openshift/library-go/pkg/config/leaderelection): an outage of the API server for a minute ends no
// operator. With the former defaults of client-go, the operator ended after ten seconds, including all work on hosts.
type Election struct {
	// Lease is the time that other candidates wait for a leader that does not renew its Lease.
	Lease time.Duration
	// RenewDeadline is the time that the leader tries to renew the Lease before it ends.
	RenewDeadline time.Duration
	// Retry is the interval between two attempts to acquire or renew the Lease.
	Retry time.Duration
}

// The default durations of leader election.
const (
	leaseDuration = 137 * time.Second
	renewDeadline = 107 * time.Second
	retryPeriod   = 26 * time.Second
)

// WithDefaults returns the durations with defaults for zero fields.
func (e Election) WithDefaults() Election {
	return Election{
		Lease: cmp.Or(e.Lease, leaseDuration), RenewDeadline: cmp.Or(e.RenewDeadline, renewDeadline),
		Retry: cmp.Or(e.Retry, retryPeriod),
	}
}

// NewScheme returns a scheme with all types of the API that the operator reads and writes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, cluster.AddToScheme, machinev1beta1.Install,
		operatorcondition.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	return scheme, nil
}

func (c Config) managerOptions(scheme *runtime.Scheme, missing *unreadableKinds) manager.Options {
	election := c.Election.WithDefaults()
	return manager.Options{
		Scheme: scheme, Logger: c.Logger, MapperProvider: newMapper,
		Metrics:                c.metricsOptions(),
		HealthProbeBindAddress: c.ProbeAddress,
		// Events of elections use the core API; all other events use events.k8s.io.
		LeaderElection: c.LeaderElection, LeaderElectionID: v1alpha1.OperatorLease, LeaderElectionNamespace: c.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &election.Lease, RenewDeadline: &election.RenewDeadline, RetryPeriod: &election.Retry,
		Controller: config.Controller{SkipNameValidation: &c.SkipNameValidation, CacheSyncTimeout: missing.timeout},
		Cache:      c.cacheOptions(missing),
	}
}

// withoutImages removes the list of images from a Node, which is most of its size and unused by the operator.
func withoutImages(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.Status.Images = nil
	}
	return cache.TransformStripManagedFields()(object)
}

// cacheOptions restricts the cache to the objects that the operator uses: its own namespace, user data, Windows
// nodes, and the fields of certificate requests that approval needs. A kind that the API server may not serve
// is not included: see queue.NewOptionalCache.
func (c Config) cacheOptions(missing *unreadableKinds) cache.Options {
	return cache.Options{
		DefaultWatchErrorHandler: missing.handleWatchError,

		DefaultNamespaces: map[string]cache.Config{c.Namespace: {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}: {
				Label:     labels.SelectorFromSet(labels.Set{corev1.LabelOSStable: "windows"}),
				Transform: withoutImages,
			},
			&corev1.Secret{}: sshkeysecret.SecretCache(c.Namespace),
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
				c.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", byoh.ConfigMapName)},
			}},
			&certificatesv1.CertificateSigningRequest{}: csr.Cached(),
		},
	}
}
