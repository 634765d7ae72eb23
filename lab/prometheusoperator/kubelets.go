package main

import (
	"fmt"
	"log/slog"

	"github.com/prometheus-operator/prometheus-operator/pkg/kubelet"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Where OpenShift's prometheus-operator lists the kubelets, by its flag --kubelet-service.
const (
	kubeletService   = "kubelet"
	kubeletNamespace = "kube-system"
	// kubeletNodes are the nodes of the lab that have a kubelet: the others are Node objects and nothing else.
	kubeletNodes = "kubernetes.io/os=windows"
)

// newKubelets returns the prometheus-operator's own controller of the Service and the EndpointSlices by which Prometheus
// finds kubelets.
func newKubelets(config *rest.Config, log *slog.Logger) (*kubelet.Controller, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the kubelets' Service: %w", err)
	}
	return kubelet.New(log, clients, nil, kubeletService, kubeletNamespace, kubeletNodes, nil, nil,
		kubelet.WithEndpointSlice(), kubelet.WithNodeAddressPriority("internal"), kubelet.WithSyncPeriod(look))
}
