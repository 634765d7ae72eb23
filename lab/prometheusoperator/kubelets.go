package main

import (
	"fmt"
	"log/slog"

	"github.com/prometheus-operator/prometheus-operator/pkg/kubelet"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The Service with OpenShift's list of kubelets, which the flag --kubelet-service of the prometheus-operator
// sets.
const (
	kubeletService   = "kubelet"
	kubeletNamespace = "kube-system"
	// kubeletNodes selects the nodes of the lab with a kubelet: all other nodes are only Node objects.
	kubeletNodes = "kubernetes.io/os=windows"
)

// newKubelets returns the prometheus-operator's own controller for the Service and the EndpointSlices of
// kubelets, which Prometheus discovers.
func newKubelets(config *rest.Config, log *slog.Logger) (*kubelet.Controller, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the kubelets' Service: %w", err)
	}
	return kubelet.New(log, clients, nil, kubeletService, kubeletNamespace, kubeletNodes, nil, nil,
		kubelet.WithEndpointSlice(), kubelet.WithNodeAddressPriority("internal"), kubelet.WithSyncPeriod(look))
}
