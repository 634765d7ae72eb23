package nodespec

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// files are all configuration files of a node. None holds a secret.
func files(in Inputs) []File {
	inherited := func(path, content string, needs ...Need) File {
		return File{Path: path, Content: content, Access: host.AccessInherited, Needs: needs}
	}
	return []File{
		inherited(apiServerCAFile, in.Cluster.APIServerCA),
		inherited(kubeletClientCAFile, in.Cluster.KubeletClientCA),
		inherited(kubeconfigFile, kubeconfig(in)),
		inherited(registrationFile, registration(in)),
		inherited(kubeletConfigFile, kubeletConfiguration(in)),
		inherited(containerdConfigFile, containerdConfiguration()),
		inherited(cniConfigFile, cniConfiguration(in), NeedPodSubnet),
		inherited(kubeProxyConfigFile, kubeProxyConfiguration(in), NeedPodSubnet, NeedSourceVIP),
	}
}

// object is a JSON object whose fields are written in the order of their names, so that equal objects give equal files.
type object = map[string]any

func encode(o object) string {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		// The objects below hold only strings, numbers, booleans, lists and objects.
		panic(fmt.Sprintf("encode a configuration file: %v", err))
	}
	return string(data) + "\n"
}

// registration is read by nobody: a change of it restarts the kubelet, so that it registers its Node again.
func registration(in Inputs) string {
	if in.Instance.Registration == "" {
		return "first\n"
	}
	return "after " + in.Instance.Registration + "\n"
}

// kubeconfig is the identity of the node: the kubelet's rotated certificate, and only the internal API server.
func kubeconfig(in Inputs) string {
	return encode(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "node",
		"clusters": []object{{"name": "cluster", "cluster": object{
			"server": in.Cluster.APIServerInternalURL, "certificate-authority": apiServerCAFile}}},
		"users": []object{{"name": "node", "user": object{
			"client-certificate": kubeletCertificateFile, "client-key": kubeletCertificateFile}}},
		"contexts": []object{{"name": "node", "context": object{"cluster": "cluster", "user": "node"}}},
	})
}

// kubeletConfiguration follows the worker pool where Windows can, and else the values that Windows nodes of OpenShift have had.
func kubeletConfiguration(in Inputs) string {
	return encode(object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": object{"x509": object{"clientCAFile": kubeletClientCAFile}, "anonymous": object{"enabled": false}},
		"clusterDNS":     in.Cluster.Kubelet.ClusterDNS, "clusterDomain": in.Cluster.Kubelet.ClusterDomain,
		"containerRuntimeEndpoint": containerdEndpoint,
		"rotateCertificates":       true, "serverTLSBootstrap": true,
		// Windows has no cgroups.
		"cgroupsPerQOS": false, "enforceNodeAllocatable": []string{"none"},
		"resolvConf":     "",
		"staticPodPath":  manifestsDirectory,
		"maxPods":        250,
		"kubeAPIQPS":     50,
		"kubeAPIBurst":   100,
		"systemReserved": object{"cpu": "500m", "ephemeral-storage": "1Gi", "memory": "2Gi"},
		// Windows cannot measure inodes or reclaim memory; disk is what fills up.
		"evictionHard":          object{"nodefs.available": "10%", "imagefs.available": "15%"},
		"serializeImagePulls":   false,
		"runtimeRequestTimeout": "10m",
		"containerLogMaxSize":   "50Mi",
		"registerNode":          true,
		"registerWithTaints": []object{
			{"key": "os", "value": "Windows", "effect": "NoSchedule"},
			// Taken away by the operator when the node was checked to work.
			{"key": "windowsmachineconfig.openshift.io/not-ready", "effect": "NoSchedule"},
		},
	})
}

// containerdConfiguration is in the format of containerd 2: version 3. Paths are TOML literal strings, which know no escapes.
func containerdConfiguration() string {
	return strings.Join([]string{
		`version = 3`,
		`root = '` + containerdRoot + `'`,
		`state = '` + containerdState + `'`,
		``,
		`[plugins.'io.containerd.cri.v1.images'.registry]`,
		`config_path = '` + registriesDirectory + `'`,
		``,
		`[plugins.'io.containerd.cri.v1.images'.pinned_images]`,
		`sandbox = 'mcr.microsoft.com/oss/kubernetes/pause:3.9'`,
		``,
		`[plugins.'io.containerd.cri.v1.runtime'.containerd]`,
		`default_runtime_name = 'runhcs-wcow-process'`,
		``,
		`[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runhcs-wcow-process]`,
		`runtime_type = 'io.containerd.runhcs.v1'`,
		``,
		`[plugins.'io.containerd.cri.v1.runtime'.cni]`,
		`bin_dirs = ['` + cniDirectory + `']`,
		`conf_dir = '` + cniConfigDirectory + `'`,
		``,
	}, "\n")
}

// cniConfiguration is that of win-overlay. Source: containernetworking/plugins, win-overlay, and the HNS policies of hybrid overlay.
func cniConfiguration(in Inputs) string {
	serviceNetworks := ipv4Networks(in.Cluster.ServiceCIDRs)
	policies := []object{{"name": "EndpointPolicy", "value": object{"type": "OutBoundNAT", "settings": object{"exceptionList": serviceNetworks}}}}
	for _, cidr := range serviceNetworks {
		policies = append(policies, object{"name": "EndpointPolicy", "value": object{
			"type": "SDNRoute", "settings": object{"destinationPrefix": cidr, "needEncap": true}}})
	}
	policies = append(policies, object{"name": "EndpointPolicy", "value": object{
		"type": "ProviderAddress", "settings": object{"providerAddress": in.Instance.NodeIP}}})
	return encode(object{
		"cniVersion": "0.2.0", "name": hnsNetwork, "type": "win-overlay", "apiVersion": 2,
		"capabilities": object{"portMappings": true, "dns": true},
		"ipam":         object{"type": "host-local", "subnet": PlaceholderPodSubnet},
		"policies":     policies,
	})
}

// kubeProxyConfiguration needs no feature gates: WinDSR and WinOverlay are always on since 1.34, and their names will go away.
func kubeProxyConfiguration(in Inputs) string {
	return encode(object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "kernelspace",
		"clientConnection": object{"kubeconfig": kubeconfigFile},
		"hostnameOverride": in.Instance.NodeName,
		"clusterCIDR":      PlaceholderPodSubnet,
		"winkernel":        object{"networkName": hnsNetwork, "sourceVip": PlaceholderSourceVIP, "enableDSR": true},
	})
}
