package nodespec

import (
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Places and names that services share.
const (
	cniDirectory           = Root + `\cni`
	cniConfigDirectory     = cniDirectory + `\config`
	cniConfigFile          = cniConfigDirectory + `\cni.conf`
	containerdDirectory    = Root + `\containerd`
	containerdConfigFile   = containerdDirectory + `\containerd_conf.toml`
	registriesDirectory    = containerdDirectory + `\registries`
	containerdRoot         = `C:\ProgramData\containerd\root`
	containerdState        = `C:\ProgramData\containerd\state`
	containerdEndpoint     = "npipe://./pipe/containerd-containerd"
	hybridOverlayDirectory = Root + `\hybrid-overlay-node`
	manifestsDirectory     = Root + `\etc\kubernetes\manifests`
	kubeconfigFile         = Root + `\kubeconfig`
	apiServerCAFile        = Root + `\bootstrap-ca.crt`
	kubeletConfigFile      = Root + `\kubelet.conf`
	kubeletClientCAFile    = Root + `\kubelet-ca.crt`
	registrationFile       = Root + `\registration`
	kubeProxyConfigFile    = Root + `\kube-proxy.conf`
	pkiDirectory           = `C:\var\lib\kubelet\pki`
	kubeletCertificateFile = pkiDirectory + `\kubelet-client-current.pem`

	baseHNSNetwork    = "BaseOVNKubernetesHybridOverlayNetwork"
	hnsNetwork        = "OVNKubernetesHybridOverlayNetwork"
	sourceVIPEndpoint = "VIPEndpoint"
)

// Recovery of every service: a crash is followed by a restart, soon at first and less often later.
var restartDelays = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute}

const restartReset = 5 * time.Minute

// clientFiles are read once, at their start, by the clients of the API server. The certificate that they lead to is read again as it rotates.
func clientFiles() []string { return []string{kubeconfigFile, apiServerCAFile} }

// services are all services of a node, in the order in which they start. Their command lines stand here and nowhere else.
func services(in Inputs, p *programs) []Service {
	list := []Service{
		containerd(in, p),
		kubelet(in, p),
		hybridOverlay(in, p),
		kubeProxy(in, p),
		windowsExporter(in, p),
		csiProxy(in, p),
	}
	if in.Cluster.Platform == platformAzure {
		list = append(list, cloudNodeManager(in, p))
	}
	return append(list, agent(in))
}

func service(name string, commandLine []string, dependencies ...string) Service {
	return Service{ServiceConfig: host.ServiceConfig{
		Name: name, DisplayName: name, Description: DescriptionPrefix + " " + name,
		CommandLine: host.CommandLine(commandLine...), StartType: host.StartAutomatic, Dependencies: dependencies,
		RestartDelays: restartDelays, ResetPeriod: restartReset,
	}}
}

// logged runs a program that logs to its standard output under kube-log-runner, which writes and rotates its log file.
func logged(in Inputs, p *programs, name string, commandLine ...string) []string {
	runner := append([]string{p.path("kube-log-runner.exe"), "-log-file=" + LogDirectory(name) + `\` + name + ".log"}, in.LogSettings.arguments()...)
	return append(runner, commandLine...)
}

// verbosity is the klog level of Kubernetes components.
func verbosity(in Inputs) string {
	if in.Debug {
		return "--v=4"
	}
	return "--v=2"
}

func containerd(in Inputs, p *programs) Service {
	level := "info"
	if in.Debug {
		level = "debug"
	}
	s := service("containerd", []string{
		p.path("containerd.exe"), "--config", containerdConfigFile,
		"--log-file", LogDirectory("containerd") + `\containerd.log`, "--run-service", "--log-level", level,
	})
	s.RestartOn = []string{containerdConfigFile}
	// Shims keep containers alive, but probes, exec and new containers fail while it is away.
	s.DisturbsPods = true
	return s
}

func kubelet(in Inputs, p *programs) Service {
	arguments := []string{
		p.path("kubelet.exe"), "--config=" + kubeletConfigFile, "--kubeconfig=" + kubeconfigFile, "--cert-dir=" + pkiDirectory,
		"--windows-service", "--windows-priorityclass=ABOVE_NORMAL_PRIORITY_CLASS",
		"--node-labels=" + nodeLabels(in),
		"--hostname-override=" + in.Instance.NodeName, "--node-ip=" + in.Instance.NodeIP, verbosity(in),
	}
	if in.Cluster.Kubelet.CloudProvider != "" {
		arguments = append(arguments, "--cloud-provider="+in.Cluster.Kubelet.CloudProvider)
	}
	s := service(ServiceKubelet, logged(in, p, ServiceKubelet, arguments...), "containerd")
	s.Needs = []Need{NeedCertificate}
	// kubelet-ca.crt is not among them: the kubelet reads it again by itself.
	s.RestartOn = append([]string{kubeletConfigFile, registrationFile}, clientFiles()...)
	// Pods run on without it. That Windows stops what depends on it too is seen by the plan.
	return s
}

// nodeLabels are what the kubelet registers the node with. Labels of kubernetes.io are not for a kubelet to set.
func nodeLabels(in Inputs) string {
	labels := "node.openshift.io/os_id=Windows"
	if in.Instance.BYOH {
		labels += ",windowsmachineconfig.openshift.io/byoh=true"
	}
	return labels
}

func hybridOverlay(in Inputs, p *programs) Service {
	const name = "hybrid-overlay-node"
	arguments := []string{
		p.path("hybrid-overlay-node.exe"), "--node", in.Instance.NodeName, "--k8s-kubeconfig=" + kubeconfigFile,
		"--windows-service", "--logfile", LogDirectory(name) + `\` + name + ".log",
	}
	if port := in.Cluster.Network.VXLANPort; port != nil {
		arguments = append(arguments, fmt.Sprintf("--hybrid-overlay-vxlan-port=%d", *port))
	}
	s := service(name, arguments, ServiceKubelet)
	s.Needs = []Need{NeedCertificate}
	s.RestartOn = clientFiles()
	// It makes the HNS network anew when it starts.
	s.DisturbsPods = true
	return s
}

func kubeProxy(in Inputs, p *programs) Service {
	s := service("kube-proxy", logged(in, p, "kube-proxy",
		p.path("kube-proxy.exe"), "--config="+kubeProxyConfigFile, "--windows-service", verbosity(in)), "hybrid-overlay-node")
	s.Needs = []Need{NeedCertificate, NeedPodSubnet, NeedSourceVIP}
	s.RestartOn = append([]string{kubeProxyConfigFile}, clientFiles()...)
	// It removes and makes the rules of Services when it starts.
	s.DisturbsPods = true
	return s
}

func windowsExporter(_ Inputs, p *programs) Service {
	const name = "windows_exporter"
	return service(name, []string{
		p.path("windows_exporter.exe"),
		"--collectors.enabled", "cpu,cpu_info,logical_disk,memory,net,os,service,system,container",
		"--log.file", LogDirectory(name) + `\` + name + ".log",
	})
}

func csiProxy(_ Inputs, p *programs) Service {
	const name = "csi-proxy"
	return service(name, []string{
		p.path("csi-proxy.exe"), "-windows-service", "-log_file=" + LogDirectory(name) + `\` + name + ".log", "-logtostderr=false", "-v=2",
	})
}

// cloudNodeManager runs on Azure only.
func cloudNodeManager(in Inputs, p *programs) Service {
	const name = "cloud-node-manager"
	s := service(name, logged(in, p, name,
		p.path("azure-cloud-node-manager.exe"), "--windows-service", "--node-name="+in.Instance.NodeName, "--wait-routes=false",
		"--kubeconfig="+kubeconfigFile), ServiceKubelet)
	s.Needs = []Need{NeedCertificate}
	s.RestartOn = clientFiles()
	return s
}

// agent is the agent itself as a service. It depends on none: it repairs them all.
func agent(in Inputs) Service {
	return service(ServiceAgent, []string{AgentPath(in.Agent.SHA256), "service"})
}

// checks prove that a node works. Those that are advisory were not seen on real Windows yet.
func checks() []Check {
	return []Check{
		{Name: "ContainerRuntimeReady", Kind: CheckContainerRuntime, Target: containerdEndpoint, Timeout: 30 * time.Second},
		{Name: "KubeletHealthy", Kind: CheckHTTP, Target: "http://127.0.0.1:10248/healthz", Timeout: time.Minute},
		{Name: "HNSNetworkReady", Kind: CheckHNSNetwork, Target: hnsNetwork, Timeout: time.Minute},
		{Name: "CNIConfigured", Kind: CheckFile, Target: cniConfigFile},
		{Name: "EndpointCanBeMade", Kind: CheckEndpoint, Target: hnsNetwork},
		{Name: "KubeProxyHealthy", Kind: CheckHTTP, Target: "http://127.0.0.1:10256/healthz", Timeout: time.Minute},
		{Name: "AgentRuns", Kind: CheckService, Target: ServiceAgent},
		{Name: "AntivirusExclusions", Kind: CheckExclusions, Advisory: true},
		{Name: "ExporterServes", Kind: CheckHTTP, Target: "http://127.0.0.1:9182/metrics", Advisory: true},
	}
}
