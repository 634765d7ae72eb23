package nodespec

import (
	"maps"
	"slices"
	"strings"
)

// Paths of the kubelet.
const (
	kubeletConfigFile   = Root + `\kubelet.conf`
	kubeletClientCAFile = Root + `\kubelet-ca.crt`
	registrationFile    = Root + `\registration`
	manifestsDirectory  = Root + `\etc\kubernetes\manifests`
	pkiDirectory        = `C:\var\lib\kubelet\pki`
)

// kubeletService registers the node and runs its pods. Source of the flags: k8s.io/kubernetes/cmd/kubelet/app/options.
func kubeletService(in Inputs, p *programs) Service {
	arguments := []string{
		p.executablePath("kubelet.exe"), "--config=" + kubeletConfigFile, "--kubeconfig=" + kubeconfigFile,
		"--cert-dir=" + pkiDirectory,
		"--windows-service",
		// Pods that use all processors must not make the node NotReady.
		"--windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS",
		"--node-labels=" + nodeLabels(in),
		// The name is determined before the host is configured. On AWS and GCP it is the cloud's name, because
		// cloud controllers find the node by this name; elsewhere it is the host's own name.
		"--hostname-override=" + in.Instance.NodeName, "--node-ip=" + in.Instance.NodeIP, verbosityFlag(in),
	}
	if in.Cluster.Kubelet.CloudProvider != "" {
		arguments = append(arguments, "--cloud-provider="+in.Cluster.Kubelet.CloudProvider)
	}
	restartOn := []string{kubeletConfigFile, registrationFile}
	if in.Cluster.Platform == platformAWS {
		arguments = append(arguments, credentialProviderArguments(p)...)
		restartOn = append(restartOn, credentialProviderFile)
	}
	s := newService(ServiceKubelet, loggedCommandLine(in, p, ServiceKubelet, arguments...), "containerd")
	s.StartType = startAfterBoot
	s.Environment = proxyEnvironment(in)
	s.Needs = []Need{NeedCertificate}
	// kubelet-ca.crt is not listed: the kubelet reloads that file.
	s.RestartOn = append(restartOn, clientFiles(ServiceKubelet)...)
	// DisruptsPods is false because pods keep running without the kubelet. The plan accounts for the dependent
	// services that Windows stops too.
	return s
}

// NodeLabels returns the labels that the kubelet registers a node with, besides its default labels for the
// operating system, the architecture and the build. The operator maintains these labels on the Node. A kubelet may
// not set other labels of kubernetes.io.
func NodeLabels(byoh bool) map[string]string {
	labels := map[string]string{"node.openshift.io/os_id": "Windows"}
	if byoh {
		labels["windowsmachineconfig.openshift.io/byoh"] = "true"
	}
	return labels
}

// nodeLabels returns the labels in the format of the kubelet's flag.
func nodeLabels(in Inputs) string {
	labels := NodeLabels(in.Instance.BYOH)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, name+"="+labels[name])
	}
	return strings.Join(pairs, ",")
}

// Taint is a taint of a Node.
type Taint struct{ Key, Value, Effect string }

// WindowsTaint returns the taint of every Windows node, which repels pods that do not tolerate Windows. The kubelet
// registers with this taint, and the operator maintains the taint on the Node.
func WindowsTaint() Taint { return Taint{Key: "os", Value: "Windows", Effect: "NoSchedule"} }

// StartupTaint returns the taint that repels pods until the operator has verified the node and removes the taint.
// The kubelet registers with this taint.
func StartupTaint() Taint {
	return Taint{Key: "startup-taint.cluster-autoscaler.kubernetes.io/windows-not-ready", Effect: "NoSchedule"}
}

func kubeletFiles(in Inputs) ([]File, error) {
	configuration, err := kubeletConfiguration(in)
	return []File{
		newInheritedFile(kubeletClientCAFile, in.Cluster.KubeletClientCA),
		newInheritedFile(registrationFile, registrationContent(in)),
		newInheritedFile(kubeletConfigFile, configuration),
	}, err
}

// registrationContent returns the content of a file that no program reads. A change of the content restarts the
// kubelet, which then registers its Node again.
func registrationContent(in Inputs) string {
	if in.Instance.Registration == "" {
		return "first\n"
	}
	return "after " + in.Instance.Registration + "\n"
}

// Resources that each Windows node reserves for Windows and the services of the node.
const (
	ReservedCPU     = "500m"
	ReservedMemory  = "2Gi"
	ReservedStorage = "1Gi"
)

// kubeletConfiguration merges the defaults for Windows nodes of OpenShift, the followed settings of the workers,
// and the settings of the operator, in ascending precedence.
func kubeletConfiguration(in Inputs) (string, error) {
	config := object{
		"maxPods":      250,
		"kubeAPIQPS":   50,
		"kubeAPIBurst": 100,
		// Windows cannot count inodes; the limiting resource is disk space.
		"evictionHard":        object{"nodefs.available": "10%", "imagefs.available": "15%"},
		"serializeImagePulls": false,
		// Windows images are large, and unpacking one is a single call to the runtime.
		"runtimeRequestTimeout": "10m",
		"containerLogMaxSize":   "50Mi",
	}
	windows, startup := WindowsTaint(), StartupTaint()
	version, err := parseKubernetes(in.Kubernetes)
	if err != nil {
		return "", err
	}
	settings, err := kubeletSettings(in.Cluster.Kubelet.Settings, version)
	if err != nil {
		return "", err
	}
	maps.Copy(config, settings)
	maps.Copy(config, object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": object{"x509": object{"clientCAFile": kubeletClientCAFile}, "anonymous": object{"enabled": false}},
		"clusterDNS":     in.Cluster.Kubelet.ClusterDNS, "clusterDomain": in.Cluster.Kubelet.ClusterDomain,
		"containerRuntimeEndpoint": ContainerdEndpoint,
		"rotateCertificates":       true, "serverTLSBootstrap": true,
		// oc adm node-logs queries the kubelet for the logs of services.
		"enableSystemLogHandler": true, "enableSystemLogQuery": true,
		// Windows has no cgroups.
		"cgroupsPerQOS": false, "enforceNodeAllocatable": []string{"none"},
		// Windows has no resolv.conf.
		"resolvConf":    "",
		"staticPodPath": manifestsDirectory,
		// Resources for Windows itself.
		"systemReserved": object{"cpu": ReservedCPU, "ephemeral-storage": ReservedStorage, "memory": ReservedMemory},
		"registerNode":   true,
		"registerWithTaints": []object{
			{"key": windows.Key, "value": windows.Value, "effect": windows.Effect},
			{"key": startup.Key, "effect": startup.Effect},
		},
	})
	if version < lockedLogQuery {
		// Without its gate, enableSystemLogQuery keeps a kubelet from starting.
		gates, _ := settings[featureGates].(object)
		config[featureGates] = mergeObjects(gates, object{"NodeLogQuery": true})
	}
	return encodeJSON(config), nil
}

// mergeObjects returns the entries of both objects; those of the second have precedence.
func mergeObjects(a, b object) object {
	merged := object{}
	maps.Copy(merged, a)
	maps.Copy(merged, b)
	return merged
}
