package nodespec

// Cluster holds the facts of the cluster that a node depends on. Equal clusters result in equal nodes.
type Cluster struct {
	// Platform is the Infrastructure platform type: None, AWS, Azure, GCP, VSphere, Nutanix, BareMetal, …
	Platform string
	// Version is the OpenShift version of the cluster, or the target version if no installation or update was
	// completed.
	Version string
	// APIServerInternalURL is the API server URL for nodes: https://api-int.<cluster>.<domain>:6443.
	APIServerInternalURL string
	// APIServerURL is the API server URL for clients outside of the cluster; empty if unknown.
	APIServerURL string
	// VirtualIPs are the addresses for the API server and for ingress that move between hosts of the cluster; empty
	// on most platforms.
	VirtualIPs []string
	// APIServerCA verifies the API server's certificate, in PEM.
	APIServerCA string
	// KubeletClientCA verifies the clients of kubelets, in PEM.
	KubeletClientCA string
	// ServiceCIDRs are the networks of Services.
	ServiceCIDRs []string
	// Kubelet holds the kubelet settings that Windows nodes share with the Linux workers.
	Kubelet WorkerKubelet
	Network ClusterNetwork
	// Proxy is the effective cluster-wide proxy; zero for none.
	Proxy Proxy
	// TrustedCAs are the certificate authorities that the cluster's administrators configured for all nodes, each
	// in PEM, sorted.
	TrustedCAs []string
	Registries Registries
	// MetricsServing is the serving certificate of the exporters; zero if the cluster has none.
	MetricsServing ServingCertificate
}

// WorkerKubelet holds the kubelet settings of the Linux workers that Windows nodes follow.
type WorkerKubelet struct {
	// ClusterDNS and ClusterDomain configure name resolution in pods.
	ClusterDNS    []string
	ClusterDomain string
	// Settings are the other worker settings that Windows nodes follow: a JSON object in canonical form.
	// IsFollowedKubeletField is true for each field. Empty for none.
	Settings string
	// CloudProvider is "external" where a cloud controller manager initializes nodes; empty elsewhere.
	CloudProvider string
}

// ClusterNetwork is the cluster's pod network.
type ClusterNetwork struct {
	// Type is the network plugin: OVNKubernetes.
	Type string
	// HybridOverlay is true when OVN-Kubernetes has a network for Windows nodes.
	HybridOverlay bool
	// PodNetworks are the networks of pods on Linux nodes.
	PodNetworks []string
	// HybridClusterNetworks are the networks that contain the pod subnets of Windows nodes.
	HybridClusterNetworks []string
	// HybridSubnets is the number of pod subnets in these networks, one for each Windows node; zero if unknown.
	HybridSubnets int
	// VXLANPort is the port of the hybrid overlay; nil for the default 4789.
	VXLANPort *int32
	// MTU is the maximum size of a pod's packets, in bytes; zero if unknown.
	MTU int32
}

// Proxy holds the proxy settings for connections from a node to the outside of the cluster.
type Proxy struct {
	// HTTP and HTTPS are URLs, which may hold a password.
	HTTP, HTTPS Secret
	// NoProxy are the names, addresses and networks that are reached without a proxy, separated by commas. The list
	// includes the names, addresses and networks of the cluster.
	NoProxy string
}

// ServingCertificate is a TLS certificate with its key, both in PEM.
type ServingCertificate struct {
	Certificate string
	Key         Secret
	// ClientCA are the authorities, in PEM, of accepted client certificates; empty if clients need no certificate.
	ClientCA string
}
