// Package openshift stands in for the parts of an OpenShift cluster that matter to a Windows node and are not part of
// Kubernetes' control plane: OVN-Kubernetes' hybrid overlay, the approvers of certificates, the cloud controller, the
// operators that bring the cluster's settings to nodes, the service CA, and the Linux nodes.
package openshift

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Options choose what runs. The zero value runs everything that needs no cloud, and no Linux nodes.
type Options struct {
	// Platform is the Infrastructure's platform type. Clouds have a cloud controller, None and empty have none.
	Platform string
	// ControlPlaneNodes and WorkerNodes are how many Linux nodes the cluster appears to have.
	ControlPlaneNodes, WorkerNodes int
	// LinuxAddress gives the address of the n-th Linux node, from 0. Default: 10.0.0.10 and on.
	LinuxAddress func(n int) string
	// CloudWorks delays the cloud controller until it is closed. Default: it works at once.
	CloudWorks <-chan struct{}
	// GuestNames returns the DNS names that the guests of virtual machines with Windows report to vSphere. Nil, or none: the
	// cloud controller finds a virtual machine for each node.
	GuestNames func() []string
	// ServiceCA makes serving certificates for Services that ask for one, and gives its own to ConfigMaps that do.
	ServiceCA bool
	// Clock is for the leases of the Linux nodes. Default: the real one.
	Clock clock.WithTicker
	// Log gets what is done. Default: nothing is logged.
	Log *slog.Logger
}

// Run runs the stand-ins with an administrator's configuration until ctx is done. An error means that they could not
// start.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	s, err := newStandIns(config, o)
	if err != nil {
		return fmt.Errorf("start the stand-ins of OpenShift: %w", err)
	}
	if err := s.linux.create(ctx); err != nil {
		return fmt.Errorf("start the stand-ins of OpenShift: %w", err)
	}
	factory := informers.NewSharedInformerFactory(s.client, 0)
	nodes := factory.Core().V1().Nodes()
	requests := factory.Certificates().V1().CertificateSigningRequests()
	s.nodes, s.requests = nodes.Lister(), requests.Lister()

	controllers := []*controller{newController("ovn", s.log, s.assignSubnet).ofNodes(),
		newController("cloud", s.log, s.initialize).ofNodes()}
	approvers := []*controller{newController("machine-approver", s.log, s.approveServing).ofNodes(),
		newController("ovn-identity-approver", s.log, s.approveOVN).ofNodes()}
	for informer, handlers := range map[cache.SharedIndexInformer][]*controller{nodes.Informer(): controllers,
		requests.Informer(): approvers} {
		for _, c := range handlers {
			if _, err := informer.AddEventHandler(c.handler()); err != nil {
				return fmt.Errorf("start the stand-ins of OpenShift: %w", err)
			}
		}
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if result := factory.WaitForCacheSyncWithContext(ctx); result.Err != nil {
		return nil // ctx is done
	}
	settings, err := s.followSettings(ctx)
	if err != nil {
		return fmt.Errorf("start the stand-ins of OpenShift: %w", err)
	}
	controllers = append(append(controllers, approvers...), settings)
	if s.ServiceCA {
		serving, err := s.runServiceCA(ctx)
		if err != nil {
			return fmt.Errorf("start the stand-ins of OpenShift: %w", err)
		}
		controllers = append(controllers, serving...)
	}
	return s.run(ctx, controllers)
}

type standIns struct {
	Options
	log      *slog.Logger
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	linux    *linuxNodes
	subnets  allocator
	nodes    corelisters.NodeLister
	requests certificateslisters.CertificateSigningRequestLister
}

func newStandIns(config *rest.Config, o Options) (*standIns, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400
	config.UserAgent = "lab stand-ins of OpenShift"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.LinuxAddress == nil {
		o.LinuxAddress = func(n int) string { return fmt.Sprintf("10.0.0.%d", 10+n) }
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &standIns{Options: o, log: log, client: client, dynamic: dynamicClient, linux: newLinuxNodes(client, o)}, nil
}

func (s *standIns) run(ctx context.Context, controllers []*controller) error {
	done := make(chan struct{})
	for _, c := range controllers {
		go func() { c.run(ctx); done <- struct{}{} }()
	}
	s.linux.keep(ctx, s.log)
	for range controllers {
		<-done
	}
	return nil
}

func (s *standIns) windowsNodes() ([]*corev1.Node, error) {
	return s.nodes.List(labels.SelectorFromSet(labels.Set{corev1.LabelOSStable: "windows"}))
}

// leasePeriod is how often the Linux nodes renew their leases.
const leasePeriod = 10 * time.Second

// pending reports whether nobody has decided about the request.
func pending(request *certificatesv1.CertificateSigningRequest) bool {
	return len(request.Status.Conditions) == 0 && len(request.Status.Certificate) == 0
}
