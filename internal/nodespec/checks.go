package nodespec

import (
	"net"
	"strconv"
	"time"
)

// nodeChecks returns the checks that verify a node. Advisory checks are reported but block nothing: these checks depend
// on more than the node, or were not yet observed on real Windows.
func nodeChecks(in Inputs) []Check {
	return []Check{
		{Name: "ContainerRuntimeReady", Kind: CheckContainerRuntime, Target: ContainerdEndpoint, Timeout: 30 * time.Second,
			Hint: `See C:\var\log\containerd\containerd.log on the host.`},
		{Name: "KubeletHealthy", Kind: CheckHTTP, Target: "http://127.0.0.1:10248/healthz", Timeout: time.Minute,
			Hint: `See C:\var\log\kubelet\kubelet.log on the host.`},
		{Name: "HNSNetworkReady", Kind: CheckHNSNetwork, Target: hnsNetwork, Timeout: time.Minute,
			Hint: `See C:\var\log\hybrid-overlay\hybrid-overlay.log on the host, and check that the Node has the annotation k8s.ovn.org/hybrid-overlay-node-subnet.`},
		{Name: "CNIConfigured", Kind: CheckFile, Target: cniConfigFile,
			Hint: "The agent writes the file after the creation of the pod network; another program may have changed the file."},
		{Name: "EndpointCanBeMade", Kind: CheckEndpoint, Target: hnsNetwork,
			Hint: "The Host Networking Service cannot create an endpoint on the pod network: see its events, and check whether the pod subnet has free addresses."},
		{Name: "KubeProxyHealthy", Kind: CheckHTTP, Target: "http://127.0.0.1:10256/healthz", Timeout: time.Minute,
			Hint: `See C:\var\log\kube-proxy\kube-proxy.log on the host.`},
		{Name: "AgentRuns", Kind: CheckService, Target: ServiceAgent,
			Hint: `See C:\var\log\wicd\windows-instance-config-daemon.exe.INFO on the host.`},
		{Name: "HNSNetworkReach", Kind: CheckHNSNetworkReach, Target: hnsNetwork, Advisory: true, Timeout: 5 * time.Second,
			Hint: `See C:\var\log\hybrid-overlay\hybrid-overlay.log on the host.`},
		{Name: "AntivirusExclusions", Kind: CheckExclusions, Advisory: true,
			Hint: "Containers start slowly if Microsoft Defender Antivirus scans their files; a group policy may forbid the exclusions."},
		{Name: "ExporterServes", Kind: CheckHTTP, Target: exporterURL(in), ClientCertificate: exporterClient(in), Advisory: true,
			Hint: `Without the exporter, the console has no graphs of the node: see C:\var\log\windows_exporter\windows_exporter.log on the host.`},
	}
}

// exporterURL returns the URL of the exporter's metrics. The exporter's certificate is valid for the name of its
// Service, not for the loopback address.
func exporterURL(in Inputs) string {
	scheme := "http"
	if in.Cluster.MetricsServing.isSet() {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(exporterPort)) + "/metrics"
}

// exporterClient returns the path of the client certificate for an exporter with client authorities. The kubelet's
// certificate is used, because the agent may read it. Another signer of the same cluster signed that certificate.
func exporterClient(in Inputs) string {
	if !in.Cluster.MetricsServing.isSet() || in.Cluster.MetricsServing.ClientCA == "" {
		return ""
	}
	return pkiDirectory + `\` + Identity{}.FileName("current")
}
