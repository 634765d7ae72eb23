package nodespec

import (
	"net"
	"net/netip"
	"strconv"
	"time"
)

// podConnectTimeout is how long kube-proxy may take to know the Services. It holds up the node's release where nothing
// answers.
const podConnectTimeout = 5 * time.Second

// checks prove that a node works. Those that are advisory are reported and hold up nothing: they depend on more than
// the node, or were not seen on real Windows yet.
func checks(in Inputs) []Check {
	list := []Check{
		{Name: "ContainerRuntimeReady", Kind: CheckContainerRuntime, Target: ContainerdEndpoint, Timeout: 30 * time.Second,
			Hint: `See C:\var\log\containerd\containerd.log on the host.`},
		{Name: "KubeletHealthy", Kind: CheckHTTP, Target: "http://127.0.0.1:10248/healthz", Timeout: time.Minute,
			Hint: `See C:\var\log\kubelet\kubelet.log on the host.`},
		{Name: "HNSNetworkReady", Kind: CheckHNSNetwork, Target: hnsNetwork, Timeout: time.Minute,
			Hint: `See C:\var\log\hybrid-overlay\hybrid-overlay.log on the host, and check that the Node has the annotation k8s.ovn.org/hybrid-overlay-node-subnet.`},
		{Name: "CNIConfigured", Kind: CheckFile, Target: cniConfigFile,
			Hint: "The file is written once the pod network exists; something else may have changed it since."},
		{Name: "EndpointCanBeMade", Kind: CheckEndpoint, Target: hnsNetwork,
			Hint: "The Host Networking Service cannot create an endpoint on the pod network: see its events, and check whether the pod subnet is used up."},
		{Name: "KubeProxyHealthy", Kind: CheckHTTP, Target: "http://127.0.0.1:10256/healthz", Timeout: time.Minute,
			Hint: `See C:\var\log\kube-proxy\kube-proxy.log on the host.`},
		{Name: "AgentRuns", Kind: CheckService, Target: ServiceAgent,
			Hint: `See C:\var\log\wicd\windows-instance-config-daemon.exe.INFO on the host.`},
		{Name: "HNSNetworkReach", Kind: CheckHNSNetworkReach, Target: hnsNetwork, Advisory: true, Timeout: 5 * time.Second,
			Hint: `See C:\var\log\hybrid-overlay\hybrid-overlay.log on the host.`},
		{Name: "AntivirusExclusions", Kind: CheckExclusions, Advisory: true,
			Hint: "Containers start slowly if Microsoft Defender Antivirus scans their files; a group policy may forbid the exclusions."},
		{Name: "ExporterServes", Kind: CheckHTTP, Target: exporterURL(in), ClientCertificate: exporterClient(in), Advisory: true,
			Hint: `Without it, the console has no graphs of the node: see C:\var\log\windows_exporter\windows_exporter.log on the host.`},
	}
	if address := firstAddress(ipv4Networks(in.Cluster.ServiceCIDRs)); address != "" {
		list = append(list, Check{Name: "PodReachesServices", Kind: CheckPodConnects, Target: net.JoinHostPort(address,
			"443"), Advisory: true,
			Timeout: podConnectTimeout,
			Hint:    "Pods on the node may be unable to reach Services: check that firewalls between the nodes allow the VXLAN port of the hybrid overlay."})
	}
	for _, address := range in.Cluster.Kubelet.ClusterDNS {
		if isIPv4(address) {
			return append(list, Check{Name: "PodReachesDNS", Kind: CheckPodConnects, Target: net.JoinHostPort(address, "53"),
				Advisory: true,
				Timeout:  podConnectTimeout,
				Hint:     "Pods on the node may be unable to resolve names: check that the cluster's DNS runs and that PodReachesServices passes."})
		}
	}
	return list
}

// exporterURL is where the exporter serves. Its certificate is for the name of its Service, not for the loopback
// address.
func exporterURL(in Inputs) string {
	scheme := "http"
	if in.Cluster.MetricsServing.set() {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(exporterPort)) + "/metrics"
}

// exporterClient is the certificate that an exporter with authorities of clients is asked with: the kubelet's, which
// another signer of the same cluster has signed, and the agent may read.
func exporterClient(in Inputs) string {
	if !in.Cluster.MetricsServing.set() || in.Cluster.MetricsServing.ClientCA == "" {
		return ""
	}
	return pkiDirectory + `\` + Identity{}.FileName("current")
}

// firstAddress returns the address of the API server's Service, kubernetes.default: the first of the first network.
func firstAddress(networks []string) string {
	if len(networks) == 0 {
		return ""
	}
	prefix, err := netip.ParsePrefix(networks[0])
	if err != nil {
		return ""
	}
	return prefix.Masked().Addr().Next().String()
}
