// Package fakeopenshift simulates the parts of an OpenShift cluster that Windows nodes need and that are not part
// of the Kubernetes control plane. These parts are the hybrid overlay of OVN-Kubernetes, the approvers of
// certificates, the cloud controller, the operators that apply cluster settings to nodes, the service CA, and
// the Linux nodes.
package fakeopenshift

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

// Options select the parts that run. The zero value runs all parts that need no cloud, without Linux nodes.
type Options struct {
	// Platform is the platform type of the Infrastructure. Clouds have a cloud controller; None and the empty
	// string do not.
	Platform string
	// ControlPlaneNodes and WorkerNodes are the numbers of simulated Linux nodes.
	ControlPlaneNodes, WorkerNodes int
	// LinuxAddress returns the address of the n-th Linux node, from 0. Default: addresses from 10.0.0.10.
	LinuxAddress func(n int) string
	// CloudWorks delays the cloud controller until the channel is closed. Default: no delay.
	CloudWorks <-chan struct{}
	// GuestNames returns the DNS names that Windows guests report to vSphere. If the function is nil or returns
	// no names, the cloud controller finds a virtual machine for each node.
	GuestNames func() []string
	// ServiceCA enables serving certificates for Services that request them, and the injection of the CA
	// certificate into ConfigMaps that request it.
	ServiceCA bool
	// Clock is the clock for the leases of the Linux nodes. Default: the real clock.
	Clock clock.WithTicker
	// Log receives the actions. Default: nothing is logged.
	Log *slog.Logger
}

// Run runs the simulated parts with an administrator's configuration until ctx is done. An error means that the
// start failed.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	s, err := newSimulator(config, o)
	if err != nil {
		return fmt.Errorf("start the stand-ins of OpenShift: %w", err)
	}
	if err := s.linux.createNodes(ctx); err != nil {
		return fmt.Errorf("start the stand-ins of OpenShift: %w", err)
	}
	factory := informers.NewSharedInformerFactory(s.client, 0)
	nodes := factory.Core().V1().Nodes()
	requests := factory.Certificates().V1().CertificateSigningRequests()
	s.nodes, s.requests = nodes.Lister(), requests.Lister()

	controllers := []*controller{newController("ovn", s.log, s.assignSubnet).withNodeWorkers(),
		newController("cloud", s.log, s.initializeNode).withNodeWorkers()}
	approvers := []*controller{newController("machine-approver", s.log, s.approveServing).withNodeWorkers(),
		newController("ovn-identity-approver", s.log, s.approveOVN).withNodeWorkers()}
	for informer, handlers := range map[cache.SharedIndexInformer][]*controller{nodes.Informer(): controllers,
		requests.Informer(): approvers} {
		for _, c := range handlers {
			if _, err := informer.AddEventHandler(c.eventHandler()); err != nil {
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

type simulator struct {
	Options
	log      *slog.Logger
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	linux    *linuxNodes
	subnets  allocator
	nodes    corelisters.NodeLister
	requests certificateslisters.CertificateSigningRequestLister
}

func newSimulator(config *rest.Config, o Options) (*simulator, error) {
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
	return &simulator{Options: o, log: log, client: client, dynamic: dynamicClient, linux: newLinuxNodes(client, o)}, nil
}

func (s *simulator) run(ctx context.Context, controllers []*controller) error {
	done := make(chan struct{})
	for _, c := range controllers {
		go func() { c.run(ctx); done <- struct{}{} }()
	}
	s.linux.keepLeases(ctx, s.log)
	for range controllers {
		<-done
	}
	return nil
}

func (s *simulator) windowsNodes() ([]*corev1.Node, error) {
	return s.nodes.List(labels.SelectorFromSet(labels.Set{corev1.LabelOSStable: "windows"}))
}

// leaseRenewInterval is the interval between lease renewals of the Linux nodes.
const leaseRenewInterval = 10 * time.Second

// isPending reports whether the request is undecided.
func isPending(request *certificatesv1.CertificateSigningRequest) bool {
	return len(request.Status.Conditions) == 0 && len(request.Status.Certificate) == 0
}
