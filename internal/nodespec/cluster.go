package nodespec

// Cluster holds the facts of the cluster that a node depends on. It is a value: equal clusters give equal nodes.
type Cluster struct {
	// Platform is the Infrastructure platform type: None, AWS, Azure, GCP, VSphere, Nutanix, BareMetal, …
	Platform string
	// Version is the OpenShift version that the cluster has, or is being brought to when it never completed one.
	Version string
	// APIServerInternalURL is where nodes reach the API server: https://api-int.<cluster>.<domain>:6443.
	APIServerInternalURL string
	// APIServerURL is where clients outside of the cluster reach it; empty when it is not known.
	APIServerURL string
	// VirtualIPs are the addresses for the API server and for ingress that hosts of the cluster hand on to each other;
	// none on most platforms.
	VirtualIPs []string
	// APIServerCA verifies the API server's certificate, in PEM.
	APIServerCA string
	// KubeletClientCA verifies the clients of kubelets, in PEM.
	KubeletClientCA string
	// ServiceCIDRs are the networks of Services.
	ServiceCIDRs []string
	// Kubelet is what the kubelets of Windows nodes have in common with those of the Linux workers.
	Kubelet WorkerKubelet
	Network ClusterNetwork
	// Proxy is the cluster-wide proxy in force; zero when there is none.
	Proxy Proxy
	// TrustedCAs are the authorities that the cluster's administrators have all nodes trust, each in PEM, sorted.
	TrustedCAs []string
	Registries Registries
	// MetricsServing is the certificate that exporters serve with; zero where the cluster has none for them.
	MetricsServing ServingCertificate
}

// WorkerKubelet are the settings of the Linux workers' kubelets that Windows nodes follow.
type WorkerKubelet struct {
	// ClusterDNS and ClusterDomain are what pods resolve names with.
	ClusterDNS    []string
	ClusterDomain string
	// Settings are the workers' other settings that Windows nodes follow: a JSON object in canonical form, of fields for
	// which FollowsKubeletField is true. Empty for none.
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
	// HybridClusterNetworks are the networks that Windows nodes get their pod subnets from.
	HybridClusterNetworks []string
	// HybridSubnets is how many pod subnets there are in these networks, one for each Windows node; zero if that is not known.
	HybridSubnets int
	// VXLANPort is the hybrid overlay's port where it is not the usual 4789.
	VXLANPort *int32
	// MTU is the largest packet of a pod, in bytes; zero when it is not known.
	MTU int32
}

// Proxy is how programs on a node connect to the outside of the cluster.
type Proxy struct {
	// HTTP and HTTPS are URLs, which may hold a password.
	HTTP, HTTPS Secret
	// NoProxy are the names, addresses and networks that are reached without it, separated by commas. It includes those of
	// the cluster.
	NoProxy string
}

// ServingCertificate is a TLS certificate with its key, both in PEM.
type ServingCertificate struct {
	Certificate string
	Key         Secret
	// ClientCA are the authorities, in PEM, of the certificates that clients must have; empty where any client may ask.
	ClientCA string
}
