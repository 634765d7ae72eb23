package nodespec

// ServiceCloudNodeManager is the name of cloud-node-manager's Windows service.
const ServiceCloudNodeManager = "cloud-node-manager"

// Paths of cloud-node-manager.
const (
	cloudNodeManagerDirectory  = Root + `\cloud-node-manager`
	cloudNodeManagerPKI        = cloudNodeManagerDirectory + `\pki`
	cloudNodeManagerKubeconfig = cloudNodeManagerDirectory + `\kubeconfig`
)

// cloudNodeManagerService reports the zone and addresses of a node on Azure to the cluster. The program reads its input
// from the instance metadata service and therefore has no configuration file. Source:
// sigs.k8s.io/cloud-provider-azure, cmd/cloud-node-manager/app/options.
func cloudNodeManagerService(in Inputs, p *programs) Service {
	const name = ServiceCloudNodeManager
	s := newService(name, loggedCommandLine(in, p, name,
		p.executablePath("azure-cloud-node-manager.exe"), "--windows-service", "--node-name="+in.Instance.NodeName,
		// Azure's routes are for clusters with a routed pod network.
		"--wait-routes=false", "--kubeconfig="+cloudNodeManagerKubeconfig, verbosityFlag(in)), ServiceKubelet)
	s.StartType = startAfterBoot
	s.Environment = proxyEnvironment(in)
	s.Needs = []Need{NeedCertificateOf(name)}
	s.RestartOn = clientFiles(name)
	return s
}

func cloudNodeManagerFiles(in Inputs) []File {
	if in.Cluster.Platform != platformAzure {
		return nil
	}
	return []File{newInheritedFile(cloudNodeManagerKubeconfig, encodeKubeconfig(in, ServiceCloudNodeManager))}
}

func cloudNodeManagerDirectories(in Inputs) []Directory {
	if in.Cluster.Platform != platformAzure {
		return nil
	}
	return []Directory{newAdminDirectory(cloudNodeManagerDirectory), newAdminDirectory(cloudNodeManagerPKI)}
}
