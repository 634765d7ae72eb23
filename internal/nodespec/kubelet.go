package nodespec

import (
	"maps"
	"slices"
	"strings"
)

// Places of the kubelet.
const (
	kubeletConfigFile   = Root + `\kubelet.conf`
	kubeletClientCAFile = Root + `\kubelet-ca.crt`
	registrationFile    = Root + `\registration`
	manifestsDirectory  = Root + `\etc\kubernetes\manifests`
	pkiDirectory        = `C:\var\lib\kubelet\pki`
)

// kubelet registers the node and runs its pods. Source of the flags: k8s.io/kubernetes/cmd/kubelet/app/options.
func kubelet(in Inputs, p *programs) Service {
	arguments := []string{
		p.path("kubelet.exe"), "--config=" + kubeletConfigFile, "--kubeconfig=" + kubeconfigFile,
		"--cert-dir=" + pkiDirectory,
		"--windows-service",
		// Pods that keep all processors busy must not make the node NotReady.
		"--windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS",
		"--node-labels=" + nodeLabels(in),
		// The name is settled before the host is configured: that of the cloud on AWS and GCP, where its controllers look the
		// node up by it, and else the host's own.
		"--hostname-override=" + in.Instance.NodeName, "--node-ip=" + in.Instance.NodeIP, verbosity(in),
	}
	if in.Cluster.Kubelet.CloudProvider != "" {
		arguments = append(arguments, "--cloud-provider="+in.Cluster.Kubelet.CloudProvider)
	}
	restartOn := []string{kubeletConfigFile, registrationFile}
	if in.Cluster.Platform == platformAWS {
		arguments = append(arguments, credentialProviderArguments(p)...)
		restartOn = append(restartOn, credentialProviderFile)
	}
	s := service(ServiceKubelet, logged(in, p, ServiceKubelet, arguments...), "containerd")
	s.StartType = startAfterBoot
	s.Environment = proxyEnvironment(in)
	s.Needs = []Need{NeedCertificate}
	// kubelet-ca.crt is not among them: the kubelet reads it again by itself.
	s.RestartOn = append(restartOn, clientFiles(ServiceKubelet)...)
	// Pods run on without it. That Windows stops what depends on it too is seen by the plan.
	return s
}

// NodeLabels returns the labels that the kubelet registers a node with, besides those that it gives every node: the
// operating system, its architecture and build. The operator keeps them on the Node. Other labels of kubernetes.io are
// not for a kubelet to set.
func NodeLabels(byoh bool) map[string]string {
	labels := map[string]string{"node.openshift.io/os_id": "Windows"}
	if byoh {
		labels["windowsmachineconfig.openshift.io/byoh"] = "true"
	}
	return labels
}

// nodeLabels returns the labels as a flag of the kubelet.
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

// WindowsTaint returns the taint that every Windows node has: it keeps pods away that do not tolerate Windows. The
// kubelet registers with it, and the operator keeps it on the Node.
func WindowsTaint() Taint { return Taint{Key: "os", Value: "Windows", Effect: "NoSchedule"} }

// StartupTaint returns the taint that keeps pods off a node until the operator has verified the node and removes the
// taint. The kubelet registers with it.
func StartupTaint() Taint {
	return Taint{Key: "startup-taint.cluster-autoscaler.kubernetes.io/windows-not-ready", Effect: "NoSchedule"}
}

func kubeletFiles(in Inputs) ([]File, error) {
	configuration, err := kubeletConfiguration(in)
	return []File{
		inherited(kubeletClientCAFile, in.Cluster.KubeletClientCA),
		inherited(registrationFile, registration(in)),
		inherited(kubeletConfigFile, configuration),
	}, err
}

// registration is read by nobody: a change of it restarts the kubelet, so that it registers its Node again.
func registration(in Inputs) string {
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

// kubeletConfiguration has the values that Windows nodes of OpenShift have had, the workers' in their place where
// Windows follows them, and what the operator needs, which nothing overrides.
func kubeletConfiguration(in Inputs) (string, error) {
	config := object{
		"maxPods":      250,
		"kubeAPIQPS":   50,
		"kubeAPIBurst": 100,
		// Windows cannot count inodes; disk is what fills up.
		"evictionHard":        object{"nodefs.available": "10%", "imagefs.available": "15%"},
		"serializeImagePulls": false,
		// Windows images are large, and unpacking one is a single call to the runtime.
		"runtimeRequestTimeout": "10m",
		"containerLogMaxSize":   "50Mi",
	}
	windows, startup := WindowsTaint(), StartupTaint()
	settings, err := kubeletSettings(in.Cluster.Kubelet.Settings)
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
		// oc adm node-logs asks the kubelet for the logs of services.
		"enableSystemLogHandler": true, "enableSystemLogQuery": true,
		// Windows has no cgroups.
		"cgroupsPerQOS": false, "enforceNodeAllocatable": []string{"none"},
		// Windows has no resolv.conf.
		"resolvConf":    "",
		"staticPodPath": manifestsDirectory,
		// What Windows itself takes.
		"systemReserved": object{"cpu": ReservedCPU, "ephemeral-storage": ReservedStorage, "memory": ReservedMemory},
		"registerNode":   true,
		"registerWithTaints": []object{
			{"key": windows.Key, "value": windows.Value, "effect": windows.Effect},
			{"key": startup.Key, "effect": startup.Effect},
		},
	})
	return encode(config), nil
}
