package nodespec

import (
	"net"
	"strconv"
	"time"
)

// checks prove that a node works. Those that are advisory are reported and hold up nothing: they depend on more than
// the node, or were not seen on real Windows yet.
func checks(in Inputs) []Check {
	return []Check{
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
