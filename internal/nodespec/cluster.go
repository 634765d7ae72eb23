package nodespec

// Cluster is what the cluster says of itself, as far as a node depends on it. It is a value: equal clusters give equal nodes.
type Cluster struct {
	// Platform is the Infrastructure platform type: None, AWS, Azure, GCP, VSphere, Nutanix, BareMetal, …
	Platform string
	// InfrastructureName is the name that the installer gave the cluster's infrastructure.
	InfrastructureName string
	// Version is the OpenShift version that the cluster has, or is being brought to when it never completed one.
	Version string
	// APIServerInternalURL is where nodes reach the API server: https://api-int.<cluster>.<domain>:6443.
	APIServerInternalURL string
	// APIServerCA verifies the API server's certificate, in PEM.
	APIServerCA string
	// KubeletClientCA verifies the clients of kubelets, in PEM.
	KubeletClientCA string
	// ServiceCIDRs are the networks of Services.
	ServiceCIDRs []string
	// Kubelet is what the kubelets of Windows nodes have in common with those of the Linux workers.
	Kubelet WorkerKubelet
	Network ClusterNetwork
}

// WorkerKubelet are the settings of the Linux workers' kubelets that Windows nodes follow.
type WorkerKubelet struct {
	// ClusterDNS and ClusterDomain are what pods resolve names with.
	ClusterDNS    []string
	ClusterDomain string
	// CloudProvider is "external" where a cloud controller manager initializes nodes; empty elsewhere.
	CloudProvider string
}

// ClusterNetwork is the cluster's pod network.
type ClusterNetwork struct {
	// Type is the network plugin: OVNKubernetes.
	Type string
	// HybridOverlay is true when OVN-Kubernetes has a network for Windows nodes.
	HybridOverlay bool
	// HybridClusterNetworks are the networks that Windows nodes get their pod subnets from.
	HybridClusterNetworks []string
	// VXLANPort is the hybrid overlay's port where it is not the usual 4789.
	VXLANPort *int32
}
