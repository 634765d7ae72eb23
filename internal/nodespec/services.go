package nodespec

import (
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Recovery settings of every service: Windows restarts a crashed service, with increasing delays.
var restartDelays = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute}

const restartReset = 5 * time.Minute

// startAfterBoot is the start type of the kubelet and its dependents, because Windows would start the kubelet as
// their dependency. After a boot, the agent first removes the files that must not exist before the pod network, and
// then starts these services.
const startAfterBoot = host.StartManual

// nodeServices returns all services of a node in start order. All command lines are defined in this package.
func nodeServices(in Inputs, p *programs) []Service {
	list := []Service{
		containerdService(in, p),
		kubeletService(in, p),
		hybridOverlayService(in, p),
		kubeProxyService(in, p),
		windowsExporterService(in, p),
		csiProxyService(in, p),
	}
	if in.Cluster.Platform == platformAzure {
		list = append(list, cloudNodeManagerService(in, p))
	}
	return append(list, agentService(in))
}

// ServiceNames returns the services of nodes on all platforms, in start order.
func ServiceNames() []string {
	return []string{ServiceContainerd, ServiceKubelet, ServiceHybridOverlay, ServiceKubeProxy, ServiceExporter,
		ServiceCSIProxy, ServiceCloudNodeManager, ServiceAgent}
}

func newService(name string, commandLine []string, dependencies ...string) Service {
	return Service{ServiceConfig: host.ServiceConfig{
		Name: name, DisplayName: name, Description: DescriptionPrefix + " " + name,
		CommandLine: host.CommandLine(commandLine...), StartType: host.StartAutomatic, Dependencies: dependencies,
		RestartDelays: restartDelays, ResetPeriod: restartReset,
	}}
}

// verbosityFlag returns the klog level of Kubernetes components.
func verbosityFlag(in Inputs) string {
	if in.Debug {
		return "--v=4"
	}
	return "--v=2"
}

// agentService returns the service of the agent itself. It has no dependencies, because the agent repairs all other
// services.
func agentService(in Inputs) Service {
	s := newService(ServiceAgent, []string{AgentPath(in.Agent.SHA256), "service"})
	s.Environment = directEnvironment()
	return s
}
