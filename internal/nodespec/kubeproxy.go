package nodespec

import "github.com/windows-machine-config/wmco/internal/host"

// ServiceKubeProxy is the name of kube-proxy's Windows service.
const ServiceKubeProxy = "kube-proxy"

const (
	kubeProxyConfigFile = Root + `\kube-proxy.conf`
	sourceVIPEndpoint   = host.SourceVIPEndpoint
)

// kubeProxyService makes Services reachable from the node and its pods.
func kubeProxyService(in Inputs, p *programs) Service {
	s := newService(ServiceKubeProxy, loggedCommandLine(in, p, ServiceKubeProxy,
		p.executablePath("kube-proxy.exe"), "--config="+kubeProxyConfigFile, "--windows-service", verbosityFlag(in)), ServiceHybridOverlay)
	s.StartType = startAfterBoot
	s.Environment = directEnvironment()
	s.Needs = []Need{NeedCertificate, NeedPodSubnet, NeedSourceVIP}
	s.RestartOn = append([]string{kubeProxyConfigFile}, clientFiles(ServiceKubeProxy)...)
	// On start, kube-proxy removes and recreates the rules of Services.
	s.DisruptsPods = true
	return s
}

func kubeProxyFiles(in Inputs) []File {
	return []File{newInheritedFile(kubeProxyConfigFile, kubeProxyConfiguration(in), NeedPodSubnet, NeedSourceVIP)}
}

// kubeProxyConfiguration sets no feature gates: WinDSR is on by default since 1.33, the oldest served version, and
// WinOverlay before. Both are locked since 1.34, and will be removed. Source of the fields: k8s.io/kube-proxy/config/v1alpha1.
func kubeProxyConfiguration(in Inputs) string {
	return encodeJSON(object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "kernelspace",
		"clientConnection": object{"kubeconfig": kubeconfigFile},
		"hostnameOverride": in.Instance.NodeName,
		"clusterCIDR":      PlaceholderPodSubnet,
		"winkernel": object{
			"networkName": hnsNetwork,
			// Source address of packets to pods on other nodes, so that responses return into the overlay.
			"sourceVip": PlaceholderSourceVIP,
			// Without direct server return, Windows Server 2019 loses packets after some time (OCPBUGS-28254).
			"enableDSR": true,
		},
	})
}
