package nodespec

import (
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Recovery of every service: a crash is followed by a restart, soon at first and less often later.
var restartDelays = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute}

const restartReset = 5 * time.Minute

// startAfterBoot is the start type of the kubelet and of all that depend on it, which would make Windows start it:
// after a boot the agent starts them, when it has taken away what must not be there before the pods' network is.
const startAfterBoot = host.StartManual

// services returns all services of a node, in the order in which they start. Their command lines stand in this package
// and nowhere else.
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

// ServiceNames are the services that a node can have, whatever the platform, in the order in which they start.
func ServiceNames() []string {
	return []string{ServiceContainerd, ServiceKubelet, ServiceHybridOverlay, ServiceKubeProxy, ServiceExporter,
		ServiceCSIProxy, ServiceCloudNodeManager, ServiceAgent}
}

func service(name string, commandLine []string, dependencies ...string) Service {
	return Service{ServiceConfig: host.ServiceConfig{
		Name: name, DisplayName: name, Description: DescriptionPrefix + " " + name,
		CommandLine: host.CommandLine(commandLine...), StartType: host.StartAutomatic, Dependencies: dependencies,
		RestartDelays: restartDelays, ResetPeriod: restartReset,
	}}
}

// verbosity returns the klog level of Kubernetes components.
func verbosity(in Inputs) string {
	if in.Debug {
		return "--v=4"
	}
	return "--v=2"
}

// agent returns the agent itself as a service. It depends on none: it repairs them all.
func agent(in Inputs) Service {
	s := service(ServiceAgent, []string{AgentPath(in.Agent.SHA256), "service"})
	s.Environment = directEnvironment()
	return s
}
